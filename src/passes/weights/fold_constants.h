#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "graph/graph.h"

namespace oxy::passes {

// Takes a graph without inputs and mutations over the constants of another, and returns for each of its
// outputs the handle of a constant with the metadata that the graph gives it (strides too). Nothing if it
// cannot: the nodes stay.
using EvaluateConstants =
    std::function<std::optional<std::vector<int32_t>>(const graph::Graph& constant_part)>;

struct FoldOptions {
  // A folded value may be larger than the constants it was made of (or come of none: arange, zeros) up to
  // this size; beyond it, computing it anew costs less than reading it. Bytes.
  int64_t growth_bytes = 64 * 1024;
};

// Puts constants in the place of the values that depend on constants alone. The maximal part of the graph
// that does is handed to `evaluate` once, with the values that the rest reads as outputs.
graph::Graph fold_constants(const graph::Graph& source, const EvaluateConstants& evaluate,
                            const FoldOptions& options = {});

// The same for values that depend on sizes besides. Their constants have symbols in their sizes, or values
// that depend on symbols: `evaluate` sees to it that the graph gets those for the sizes of the call.
graph::Graph separate_size_constants(const graph::Graph& source, const EvaluateConstants& evaluate,
                                     const FoldOptions& options = {});

}  // namespace oxy::passes
