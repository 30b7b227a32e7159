#pragma once

#include "graph/graph.h"

namespace oxy::passes {

// Applies the registry's decompositions (ops/core/registry.h) until none applies. InternalError if they do
// not come to an end.
graph::Graph decompose(const graph::Graph& source);

}  // namespace oxy::passes
