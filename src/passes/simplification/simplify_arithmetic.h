#pragma once

#include "graph/graph.h"

namespace oxy::passes {

// Removes arithmetic that gives its argument back bit for bit: x * 1, x / 1, x - 0, x + 0 of integers (0.0
// would turn -0.0 into 0.0), x ** 1, padding by nothing, dropout in evaluation, relu of relu. Only where
// type, layout and shape stay the same. Sums over what scatter has put among zeros, one element a row, are
// those elements.
graph::Graph simplify_arithmetic(const graph::Graph& source);

}  // namespace oxy::passes
