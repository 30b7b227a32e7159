#pragma once

#include "graph/graph.h"

namespace oxy::passes {

// The bias of a convolution becomes an addition to its result, and the gradient of the bias a sum over the
// gradient of the result, for libraries that use kernels of their own for both anyway: the addition is fused
// with what follows, the sum with what computes the gradient.
graph::Graph separate_bias(const graph::Graph& source);

}  // namespace oxy::passes
