// Checks operators whose results nobody reads. No compiled code computes them, but in eager they may raise.
#pragma once

#include "graph/graph.h"
#include "torch_api/symbolic_node.h"

namespace oxy::trace {

// Calls eager's kernels for such nodes before `end`, on zeros of the operands' sizes: those at hand where
// they are symbols. Throws Unsupported if one raises. Errors that depend on the elements of tensors are not
// found. Operators whose readers are not read either are called if they have few elements. as_strided() may
// leave the memory of its tensor, which no shape rule knows: it is always called.
void check_unread_results(const graph::Graph& graph, graph::NodeId end, const torch_api::Symbols* symbols);

}  // namespace oxy::trace
