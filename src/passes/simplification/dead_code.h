#pragma once

#include "graph/graph.h"

namespace oxy::passes {

// Removes the nodes and constants that no output, mutation or effect needs. Random operators stay: eager
// advances the generator for them too. Numbers the values afresh.
graph::Graph remove_dead_code(const graph::Graph& source);

// Whether there are any.
bool has_dead_code(const graph::Graph& graph);

}  // namespace oxy::passes
