#pragma once

#include "graph/graph.h"

namespace oxy::passes {

// What computes an activation of one tensor by several operators, `0.5 * x * (1 + tanh(...))`, becomes the
// operator of that name: aten::gelu of either kind or aten::silu. Products apply those to their results. A
// formula is recognised by its values at some points, so that it may be written in any way.
graph::Graph recognise_activations(const graph::Graph& source);

}  // namespace oxy::passes
