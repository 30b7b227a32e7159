// The part of a graph that depends on constants alone, or on constants and sizes: what need not be computed
// at every call.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "graph/graph.h"

namespace oxy::passes {

enum class Invariance : uint8_t {
  Always,         // depends on constants alone
  WhileSizesAre,  // depends on constants and on symbols
};

struct ConstantPart {
  graph::Graph graph;                         // the part, without inputs; its outputs are the results
  std::vector<graph::ValueId> results;        // by output: the value of the source
  IdVector<graph::NodeId, bool> is_replaced;  // nodes of the source that its results stand for
};

// The largest part of the source of this kind from which the rest reads no view and no result of more
// bytes than those of the constants that it is made of and `growth_bytes` together. Sizes count as their
// values at hand (sym/hints.h). Random nodes and uninitialised tensors do not belong to it.
//
// A result of `WhileSizesAre` depends on a symbol, is not the memory of a result of the graph or of a
// mutation, and is no new tensor of numbers, which a kernel computes as fast as it reads it.
ConstantPart find_constant_part(const graph::Graph& source, Invariance invariance, int64_t growth_bytes);

// The source with the constant of handles[i] in the place of part.results[i].
graph::Graph with_constants(const graph::Graph& source, const ConstantPart& part,
                            std::span<const int32_t> handles);

// For each value, whether it depends on constants alone.
IdVector<graph::ValueId, bool> constant_values(const graph::Graph& graph);

}  // namespace oxy::passes
