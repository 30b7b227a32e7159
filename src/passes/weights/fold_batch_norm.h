#pragma once

#include "graph/graph.h"

namespace oxy::passes {

// Batch norm in evaluation after a convolution that nothing else reads, all parameters constant: the
// convolution with weight * g * rsqrt(variance + eps) and a bias to match. The factors and the bias are
// computed in float64, by nodes on constants, which fold_constants evaluates.
graph::Graph fold_batch_norm(const graph::Graph& source);

}  // namespace oxy::passes
