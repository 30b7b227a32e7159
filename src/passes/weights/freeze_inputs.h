#pragma once

#include <cstdint>
#include <span>

#include "graph/graph.h"

namespace oxy::passes {

struct FrozenGraph {
  graph::Graph graph;
  std::vector<int32_t> kept;  // for each input of `graph`, its number in the source
};

// Makes constants of inputs: input i gets the handle handles[i], or stays an input if that is -1, if the
// graph writes to it or if an output aliases it. Mutations and aliases are renumbered.
FrozenGraph freeze_inputs(const graph::Graph& source, std::span<const int32_t> handles);

}  // namespace oxy::passes
