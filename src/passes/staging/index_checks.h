// Checks of indices in front of the operators that take them. A GPU's kernel that meets an index out of range
// ends the device's work for good; a check that the host makes before raises IndexError, and nothing is lost.
// Where the tensor is on the host, the call is left to eager, which raises the same.
#pragma once

#include <functional>

#include "graph/graph.h"
#include "ops/indexing/checked_indices.h"

namespace oxy::passes {

// `self`: what the index names positions in.
using WantsCheck =
    std::function<bool(const graph::Graph& source, const ops::CheckedIndex& checked, const TensorMeta& self)>;

// Appends op::check_indices() for those that are wanted. Precondition: functional.
graph::Graph check_indices(graph::Graph source, const WantsCheck& wants);

}  // namespace oxy::passes
