// Parts of a backward pass may read of the caller's tensors what eager's autograd keeps for them, and no
// more.
//
// What is kept is checked for writes: a part that reads another tensor, to compute again what eager has
// saved, would raise where eager does not.
#pragma once

#include <vector>

#include "autograd/recording/joint.h"
#include "passes/training/backward_parts.h"
#include "passes/training/partition.h"
#include "trace/recorder/recorder.h"

namespace oxy::autograd {

// Fills in Joint::kept, Joint::keeps_input and ForwardOutput::is_kept.
void note_what_autograd_keeps(const trace::Recording& recording, Joint& joint);

// By saved tensor of the part, then by its tangents: whether the gradients that come from this tangent are
// computed with the saved tensor.
std::vector<std::vector<bool>> readers_of_saved(const passes::BackwardPart& part);

// `halves` and `parts` are what `roles` made of `joint_graph`. Changes the roles and returns true if a part
// reads what it may not: then they have to be made again.
bool keep_apart(const graph::Graph& joint_graph, const passes::Partition& halves,
                const std::vector<passes::BackwardPart>& parts, const Joint& joint,
                passes::JointRoles& roles);

}  // namespace oxy::autograd
