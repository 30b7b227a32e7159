// What a call of torch.utils.checkpoint computed (graph::Location::checkpoint) and the backward pass needs:
// computed again instead of kept.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/graph.h"

namespace oxy::passes {

enum class CheckpointRole : uint8_t {
  None,      // not under a checkpoint, a view, or random numbers, which are kept
  Interior,  // only its own checkpoint reads it in the forward pass: nothing keeps it
  Result,    // what is outside of its checkpoint reads it in the forward pass: never computed again
};

// `is_forward`: whether what it reads is read in the forward pass.
IdVector<graph::ValueId, CheckpointRole> checkpoint_roles(const graph::Graph& graph,
                                                          const IdVector<graph::NodeId, bool>& is_forward);

}  // namespace oxy::passes
