#pragma once

#include "graph/graph.h"

namespace oxy::passes {

// Computes equal calls once: same operator, arguments and output metadata, no effect. Constants of one handle
// and metadata become one. The graph must be functional.
graph::Graph merge_common_subexpressions(const graph::Graph& source);

}  // namespace oxy::passes
