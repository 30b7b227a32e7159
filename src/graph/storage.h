// Which values of a graph share memory.
#pragma once

#include <vector>

#include "graph/graph.h"

namespace oxy::graph {

// By value of a graph as recorded, the first value of its storage.
IdVector<ValueId, ValueId> storage_roots(const Graph& graph);

}  // namespace oxy::graph
