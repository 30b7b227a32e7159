#pragma once

#include "graph/graph.h"

namespace oxy::trace {

// Rewrites a recorded graph without in-place operators: writes become new values, views of written storage
// are recomputed from their base, inputs that were written appear in `mutations`, outputs that share storage
// with an input or an earlier output get their OutputKind. Throws Unsupported for writes that it cannot
// express (set_, resize_, writes through overlapping views). The result passes verify(graph, functional =
// true). `default_dtype` is torch's default type of floats when the graph was recorded.
graph::Graph functionalise(const graph::Graph& recorded, DType default_dtype = DType::Float32);

}  // namespace oxy::trace
