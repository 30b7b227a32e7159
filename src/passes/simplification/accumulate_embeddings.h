#pragma once

#include "graph/graph.h"

namespace oxy::passes {

// The gradient of an embedding's weight that is only added to another gradient of it (a weight that is used
// twice) is accumulated there, row by row, instead of being made first: a table of zeros less.
graph::Graph accumulate_embeddings(const graph::Graph& source);

}  // namespace oxy::passes
