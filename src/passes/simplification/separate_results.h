#pragma once

#include "graph/graph.h"

namespace oxy::passes {

// The last pass: an output of kind Value that earlier passes made share memory with an input, a constant or
// another such output, or a part of a larger result although it had memory of its own, becomes a copy, and so
// does a mutation's value that shares memory with a mutated input. `had_own_memory`:
// outputs_with_own_memory() of the graph before the passes.
graph::Graph separate_results(const graph::Graph& source, const std::vector<bool>& had_own_memory);
// For each output, whether it is a Value that is no view.
std::vector<bool> outputs_with_own_memory(const graph::Graph& graph);

}  // namespace oxy::passes
