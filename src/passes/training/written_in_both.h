// Values that both passes would write to memory, if the backward pass computed them again.
//
// A fused kernel keeps what it computes in registers. It writes what an operator outside of kernels reads,
// and what is read behind such an operator, where another kernel runs. The forward pass has written these
// values anyway, so that to save them costs no time. To compute them again costs a second write, and in a
// chain (the sums of a residual stream, each of which needs the one before it) the whole chain at once.
#pragma once

#include <functional>

#include "graph/graph.h"
#include "passes/training/saved_values.h"

namespace oxy::passes {

// An operator, no view, that no kernel of ours computes.
bool is_outside_of_kernels(const graph::Node& node);

// `may_recompute`: of a node of the forward pass, whether the backward pass may compute it again. `is_joined`
// (passes/training/joined_recomputation.h): values of which a kernel of the backward pass reads the operands
// anyway; they are not among the result.
IdVector<graph::ValueId, bool> written_in_both(const graph::Graph& graph, const BackwardPass& pass,
                                               const IdVector<graph::ValueId, bool>& is_joined,
                                               const std::function<bool(graph::NodeId)>& may_recompute);

}  // namespace oxy::passes
