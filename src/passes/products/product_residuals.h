#pragma once

#include <functional>

#include "graph/graph.h"

namespace oxy::passes {

// Whether the library's product of this type adds a matrix to its result before it stores it. Without this
// function the pass does nothing.
using ProductAddsResidual = std::function<bool(DType dtype)>;

// A product, with a row as bias or without, and a sum that alone reads it, become oxyfuel::residual_product,
// if the sum is read more than once: it is in memory then, and the kernel that reads the product would have
// to read the other operand as well, and to write the sum. A sum that only one kernel reads gains nothing.
graph::Graph add_residuals_to_products(const graph::Graph& source, const ProductAddsResidual& adds);

}  // namespace oxy::passes
