#pragma once

#include "graph/graph.h"

namespace oxy::passes {

// The last pass: an output of kind Value that earlier passes made share memory with an input, a constant or
// another such output becomes a copy, and so does a mutation's value that shares memory with a mutated input.
graph::Graph separate_results(const graph::Graph& source);

}  // namespace oxy::passes
