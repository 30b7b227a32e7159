// The backward graphs of a recording's parts (autograd/recording/separate_backward.h), from that of the
// whole.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/graph.h"

namespace oxy::passes {

// What has come to the place of a tangent in all, as an output of the graph of the whole.
struct Total {
  size_t output = 0;
  size_t tangent = 0;
};

// The graph with what goes on from totals held apart from the totals themselves, so that no pass that follows
// calculates it from what a total was calculated from, or the other way round: backward_parts() cuts there.
graph::Graph hold_totals_apart(const graph::Graph& joint, const std::vector<Total>& totals);

struct BackwardPart;
using PartId = Id<BackwardPart>;

struct BackwardPart {
  graph::Graph graph;              // inputs: `saved`, then `tangents`; outputs: gradients
  std::vector<size_t> saved;       // numbers of the whole's saved inputs
  std::vector<size_t> tangents;    // numbers of the whole's tangents
  std::vector<int32_t> gradients;  // for each gradient of the whole, the output of `graph`; -1: none here
};

// What of a backward graph belongs to which result.
struct BackwardRoles {
  struct Gradient {
    int32_t output = -1;  // of the graph; -1: it has none
    // The tangent to which it is the total of what comes from other parts and from outside; -1: of an input.
    int32_t result = -1;
    std::vector<bool> tangents;  // by tangent: it flows into this one, through no result of another part
  };
  size_t saved = 0;                     // inputs after these are tangents
  std::vector<PartId> part_of_tangent;  // any numbers; tangents with the same one stay together
  std::vector<Gradient> gradients;
};

// `whole` is what passes have made of a graph with its totals held apart. A part comes behind those that its
// gradients flow into, and else in the order of their numbers.
std::vector<BackwardPart> backward_parts(const graph::Graph& whole, const BackwardRoles& roles);

}  // namespace oxy::passes
