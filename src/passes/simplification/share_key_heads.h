#pragma once

#include "graph/graph.h"

namespace oxy::passes {

// Attention whose keys and values were copied so that each head of the query has its own (grouped-query
// attention) is given the heads themselves, where its kernel shares them: a copy of each less.
graph::Graph share_key_heads(const graph::Graph& source);

}  // namespace oxy::passes
