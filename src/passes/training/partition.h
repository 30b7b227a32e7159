// A graph that computes results and gradients, cut into a forward and a backward graph.
//
// What the backward graph needs is saved or computed again: passes/training/saved_values.h.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/graph.h"

namespace oxy::passes {

struct JointRoles {
  size_t forward_inputs = 0;       // graph inputs after these are tangents
  size_t forward_outputs = 0;      // graph outputs after these are gradients
  std::vector<bool> keeps_input;   // the caller may keep this forward input as it is until the backward pass
  std::vector<bool> keeps_output;  // likewise for forward outputs. What others have is Shared or Extra
  double memory_budget = 1;        // BackwardPass::memory_budget
  IdVector<graph::NodeId, bool> made_once;  // BackwardPass::made_once
};

struct SavedValue {
  enum class Kind : uint8_t {
    Input,   // forward input `index`
    Output,  // forward output `index`, one that is a tensor of its own
    Shared,  // forward output `index`, which the caller may write to: the memory has to be shared with it
             // copy-on-write
    Extra,   // output `forward_outputs + index` of the forward graph
  };
  Kind kind = Kind::Extra;
  int32_t index = -1;

  // Nobody else can write to it.
  bool is_apart() const { return kind == Kind::Shared || kind == Kind::Extra; }
};

struct Partition {
  graph::Graph forward;   // the joint graph's forward inputs and outputs, then what is saved as Extra
  graph::Graph backward;  // inputs: `saved` in order, then tangents. Outputs: gradients, each a tensor of its
                          // own or a tangent itself
  std::vector<SavedValue> saved;
  std::vector<int32_t> gradients;  // for each gradient of the joint graph, the backward graph's output
};

// `joint` is functional, and its passes have run. Throws Unsupported if a forward output or a write depends
// on a tangent.
Partition partition(const graph::Graph& joint, const JointRoles& roles);

}  // namespace oxy::passes
