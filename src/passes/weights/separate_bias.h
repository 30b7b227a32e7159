#pragma once

#include "graph/graph.h"

namespace oxy::passes {

// The bias of a convolution becomes an addition to its result, for libraries that add it by a kernel of their
// own anyway: the addition is fused with what follows.
graph::Graph separate_bias(const graph::Graph& source);

}  // namespace oxy::passes
