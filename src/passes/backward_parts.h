// One backward graph for each set of results whose gradients eager's autograd could ask for apart.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/graph.h"

namespace oxy::passes {

struct BackwardPart {
  graph::Graph graph;            // inputs: `saved`, then `tangents`; outputs: gradients
  std::vector<size_t> saved;     // numbers of the whole's saved inputs
  std::vector<size_t> tangents;  // numbers of the whole's tangents
  std::vector<int32_t>
      gradients;  // for each gradient of the whole, the output of `graph`; -1: it has none here
};

// What of a backward graph belongs to which result.
struct BackwardRoles {
  size_t saved = 0;                      // inputs after these are tangents
  std::vector<int32_t> part_of_tangent;  // any numbers; tangents with the same one stay together
  std::vector<int32_t> gradients;        // for each gradient, the output of the graph; -1: it has none
  std::vector<std::vector<bool>> flows;  // for each gradient, the tangents that flow into it
};

// In the order of their first tangents. Unsupported as passes::without_gradients has it.
std::vector<BackwardPart> backward_parts(const graph::Graph& whole, const BackwardRoles& roles);

}  // namespace oxy::passes
