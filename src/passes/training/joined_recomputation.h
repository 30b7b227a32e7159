// What the backward pass computes again inside of kernels that it has anyway.
//
// The gradient of a gelu reads the gelu's operand. Its kernel can write the gelu's result as well, for the
// gradient of a weight that was multiplied with it: this takes one more write, and the result need not be
// saved. The product of the weight's gradient has to wait for that kernel, though it is recorded before it.
#pragma once

#include <functional>
#include <vector>

#include "graph/graph.h"
#include "passes/training/saved_values.h"

namespace oxy::passes {

// The values that operators outside of kernels read in the backward pass, and that are made of what kernels
// of the backward pass read anyway. Values of few bytes are not among them, and neither is what is made of
// such values: a chain of them would be a chain of writes.
// `may_recompute`: of a node of the forward pass, whether the backward pass may compute it again.
IdVector<graph::ValueId, bool> joined_recomputations(const graph::Graph& graph, const BackwardPass& pass,
                                                     const std::function<bool(graph::NodeId)>& may_recompute);

// The nodes in the order in which they are to run, unless another node needs them earlier: the order of the
// graph, but for late operators outside of kernels that read what is computed again. They come behind late
// kernels that read the same operands.
// `is_late`: it runs in the backward pass. `is_saved`: the backward pass finds it, so that it is not computed
// again; inputs and constants are.
std::vector<graph::NodeId> joined_order(const graph::Graph& graph,
                                        const IdVector<graph::NodeId, bool>& is_late,
                                        const IdVector<graph::ValueId, bool>& is_saved);

}  // namespace oxy::passes
