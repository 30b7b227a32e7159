// Functionalisation: the writes and views of a recording become values.
#pragma once

#include "graph/graph.h"

namespace oxy::trace {

// Rewrites a recorded graph without in-place operators:
//   - A write becomes a new value.
//   - Views of a written storage are computed again from their base.
//   - Inputs that were written appear in `mutations`.
//   - Outputs that share storage with an input or an earlier output get their OutputKind.
// Throws Unsupported for writes that it cannot express (set_, resize_, writes through views whose elements
// overlap). The result passes verify(graph, functional = true). `default_dtype`: torch's default dtype at the
// recording.
graph::Graph functionalise(const graph::Graph& recorded, DType default_dtype = DType::Float32);

}  // namespace oxy::trace
