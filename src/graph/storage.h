// Which values of a graph share memory.
#pragma once

#include <functional>
#include <vector>

#include "graph/graph.h"

namespace oxy::graph {

// By value of a graph as recorded, the first value of its storage. Nodes that are `is_apart` count as if
// their results had memory of their own.
IdVector<ValueId, ValueId> storage_roots(const Graph& graph,
                                         const std::function<bool(NodeId)>& is_apart = {});

}  // namespace oxy::graph
