// Operators whose results nobody reads: no compiled code computes them, but eager raises what they raise.
#pragma once

#include "graph/graph.h"

namespace oxy::trace {

// Calls eager's kernels of such nodes, before `end`, with zeros of the operands' sizes:
// Unsupported if one raises. What depends on what tensors hold is not seen.
void check_unread_results(const graph::Graph& graph, graph::NodeId end);

}  // namespace oxy::trace
