// Operators whose results nobody reads: no compiled code computes them, but eager raises what they raise.
#pragma once

#include "graph/graph.h"
#include "torch_api/symbolic_node.h"

namespace oxy::trace {

// Calls eager's kernels of such nodes, among the first `nodes`, with zeros of the operands' sizes, those at
// hand where they are symbols: Unsupported if one raises. What depends on what tensors hold is not seen.
void check_unread_results(const graph::Graph& graph, size_t nodes, const torch_api::Symbols* symbols);

}  // namespace oxy::trace
