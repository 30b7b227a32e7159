// Values that must stay where they were recorded.
#pragma once

#include <vector>

#include "graph/graph.h"

namespace oxy::passes {

// Whether an as_strided reads the whole storage that it lies in, through views or not.
IdVector<graph::ValueId, bool> values_read_as_storage(const graph::Graph& graph);

}  // namespace oxy::passes
