#pragma once

#include "graph/graph.h"

namespace oxy::passes {

// In a graph with backward passes of the program's own (graph::kInBackwardPass): these, and what needs them,
// compute again what is not saved for them (passes/training/saved_values.h), right before they need it.
// `memory_budget` as there. The last pass: those that merge equal nodes would undo it.
graph::Graph recompute_for_backward(const graph::Graph& source, double memory_budget);

}  // namespace oxy::passes
