#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "graph/graph.h"

namespace oxy::passes {

// Runs a graph without inputs, mutations and symbols, and returns for each of its outputs the handle of a
// tensor with the metadata that the graph gives it (strides too). Nothing if it cannot: the nodes stay.
using EvaluateConstants =
    std::function<std::optional<std::vector<int32_t>>(const graph::Graph& constant_part)>;

struct FoldOptions {
  // A folded value may be larger than the constants it was made of (or come of none: arange, zeros) up to
  // this size; beyond it, computing it anew costs less than reading it. Bytes.
  int64_t growth_bytes = 64 * 1024;
};

// Puts constants in the place of the values that depend on constants alone. The maximal part of the graph
// that does is handed to `evaluate` once, with the values that the rest reads as outputs. Random and symbolic
// nodes and uninitialised tensors are never folded.
graph::Graph fold_constants(const graph::Graph& source, const EvaluateConstants& evaluate,
                            const FoldOptions& options = {});

// For each value, whether it depends on constants alone.
IdVector<graph::ValueId, bool> constant_values(const graph::Graph& graph);

}  // namespace oxy::passes
