// Which integers of a call have to lie within a dimension, for checks that are made before the call.
#pragma once

#include <optional>
#include <vector>

#include "graph/graph.h"

namespace oxy::ops {

struct CheckedIndex {
  graph::ValueId index;  // a tensor of integers
  Expr size;             // of what it names positions in
  int64_t dimension = 0;
  Expr elements = 1;                 // as many or none are read or written; of none, no index is looked at
  bool counts_back = false;          // negative ones count from the end
  std::optional<Expr> ignored = {};  // an integer that names nothing
};

// Those that are not known to lie within (OperatorEntry::indices). The graph is functional.
std::vector<CheckedIndex> checked_indices(const graph::Graph& graph, const graph::Node& node);

}  // namespace oxy::ops
