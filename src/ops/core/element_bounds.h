// Bounds of the elements of a value of a graph (ops/core/bounds.h).
#pragma once

#include <optional>
#include <unordered_set>

#include "graph/graph.h"
#include "ops/core/bounds.h"

namespace oxy::ops {

// Nothing where they are not known. `read`: receives the values that they follow from. In a graph that is not
// functional the answer holds only if none of these is written to.
std::optional<Bounds> element_bounds(const graph::Graph& graph, graph::ValueId value,
                                     std::unordered_set<graph::ValueId>* read = nullptr);

}  // namespace oxy::ops
