// What of a forward pass is kept for the backward pass, and what is computed again.
//
// Whichever moves fewer bytes: a minimum cut over the values between the forward pass and the gradients
// (PyTorch 2 paper, section 5 "min-cut"). Only cheap operators are computed again (ops::Traits::is_cheap, and
// softmaxes of halves, which have a price), not products and other reductions, and not what both passes would
// write to memory (passes/training/written_in_both.h), unless a memory budget asks for it; never what
// draws from a generator, nor what the backward pass compares for equality. What BackwardPass::is_read_itself
// speaks of is not saved. What ran under torch.utils.checkpoint is computed again as the program asks
// (passes/training/checkpoints.h).
#pragma once

#include <vector>

#include "graph/graph.h"

namespace oxy::passes {

struct BackwardPass {
  // It runs in the backward pass. What it reads and such a node has not made is saved, or follows
  // from what is.
  IdVector<graph::NodeId, bool> is_late;
  IdVector<graph::NodeId, bool> is_forward;  // what it reads is read in the forward pass
  std::vector<graph::ValueId> inputs;        // of the graph, that are there in the forward pass
  std::vector<graph::ValueId> wanted;        // what else is needed in the backward pass
  IdVector<graph::ValueId, bool> is_held;    // somebody holds it until then anyway
  // Held values that eager's backward pass reads themselves. They are not computed again, and what the
  // backward pass alone computes of them is not saved in their place: a write that autograd does not see
  // (`x.data`) shows in the gradients. Empty: none.
  IdVector<graph::ValueId, bool> is_read_itself;
  // The bytes that may be saved besides what is held anyway, as a share (0 to 1) of what is saved without a
  // budget. Below 1, products and reductions are computed again too, those first that give most bytes for
  // their work.
  double memory_budget = 1;
  // It is not computed again, unless a checkpoint asks for it. Empty: what may be, is.
  IdVector<graph::NodeId, bool> made_once;
};

// The values to save, ascending; constants are never among them.
std::vector<graph::ValueId> choose_saved(const graph::Graph& graph, const BackwardPass& pass);

}  // namespace oxy::passes
