// Which values of a recording the program writes to.
#pragma once

#include <unordered_set>

#include "graph/graph.h"

namespace oxy::trace {

// Whether a node of the graph writes to one of `values`, or to a view of one.
bool is_written(const graph::Graph& graph, const std::unordered_set<graph::ValueId>& values);

}  // namespace oxy::trace
