// The elements of a value of a graph, as functions of their coordinates (ops/core/element_rules.h).
#pragma once

#include <optional>
#include <unordered_set>

#include "graph/graph.h"
#include "ops/core/element_rules.h"

namespace oxy::ops {

// A variable for each dimension of those sizes; 0 for a dimension of one element. They are no symbols of the
// graph: only answers of `element_at` have them.
Coordinates coordinates_of(const std::vector<Expr>& sizes);

// Nothing where it is not known. `read`: receives the values that it follows from. In a graph that is not
// functional the answer holds only if none of these is written to.
std::optional<Element> element_at(const graph::Graph& graph, graph::ValueId value, const Coordinates& at,
                                  std::unordered_set<graph::ValueId>* read = nullptr);

// Whether the indices of an operator that takes a list of them (aten::index) are known to lie within the
// tensor, whatever the inputs are. The graph is functional.
bool indices_lie_within(const graph::Graph& graph, const graph::Node& node);

}  // namespace oxy::ops
