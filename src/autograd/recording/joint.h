// What a recording knows of its backward pass.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "passes/training/backward_parts.h"

namespace oxy::autograd {

// A result of a recorded call of a view operator.
struct ViewStep {
  graph::NodeId node;
  size_t output = 0;
  graph::ValueId value;
};

struct ViewCall {
  graph::Node node;
  bool grad_mode = true;      // when it was made
  bool requires_grad = true;  // of what it was made of, then
};

// What autograd thinks of writes to a result.
enum class ViewState : uint8_t {
  Free,        // no view, or one that may be written to
  Restricted,  // a write to it is an error: one of several that one operator made, or a view made without
               // grad
  Stale,       // likewise, and its memory was written to since: any use of its history is an error
  Unrecorded,  // made before the tensor of which it is a view required grad, and nothing has asked for its
               // history since: it counts as a leaf, so a write to it is an error
};

// Whether the view's memory was written to since it was made, so that autograd knows no history that holds.
constexpr bool is_outdated(ViewState state) {
  return state == ViewState::Stale || state == ViewState::Unrecorded;
}

// Where a gradient comes into the backward pass: at a result, or at a join (separate_backward.h).
struct Tangent {
  // The number of one: a backward pass through places of one number frees what another one needs. -1: it
  // frees nothing.
  int32_t freed_with = -1;
  // Those of one part share their backward pass. Parts are numbered in the order in which the program made
  // them; all of them 0 if there would be too many.
  passes::PartId part{0};
  bool part_frees = false;  // the backward pass of the part frees something
};

// What a result whose history is spent came from: a graph input, or another forward output.
struct SpentSource {
  bool is_input = true;
  size_t index = 0;
};

// A forward output of the joint graph, as autograd is to know it.
struct ForwardOutput {
  bool requires_grad = false;
  // Eager's own autograd keeps it until the backward pass, and checks it for writes then.
  bool is_kept = false;
  graph::ValueId value;  // the recorded value that it is
  // Of a view that requires grad: the operators that made it of the tensor that autograd takes it to be a
  // view of.
  std::vector<ViewStep> view_steps;
  ViewState view_state = ViewState::Free;
  // What eager raises when a gradient of it is asked for, because the program's own backward pass has freed
  // its history; empty for the others.
  std::string spent;
  std::vector<SpentSource> spent_sources;
};

// What eager's autograd keeps for one tangent: the tensors of the forward pass that are read by the backward
// nodes of its part to which its gradient flows.
struct Kept {
  std::vector<bool> inputs;   // by forward input
  std::vector<bool> outputs;  // by forward output
};

struct Gradient {
  int32_t input = -1;   // a graph input that requires grad, or
  int32_t result = -1;  // the number of a tangent: what comes to its place from other parts adds up to it
  int32_t output = -1;  // the graph output that is its gradient; -1: it has none
  bool is_zero_tensor = false;  // in eager, where all tangents flow: zeros without memory
  std::vector<bool> tangents;   // those that flow into it: where they are undefined, so is the gradient
  std::vector<bool> tangents_of_part;  // those that do if parts have backward passes of their own
};

// What a recording knows of its backward pass: the nodes from `first_backward` on compute gradients.
struct Joint {
  graph::NodeId first_backward;
  size_t forward_inputs = 0;  // the graph inputs after these are tangents
  // The graph outputs after these are gradients. Those with tangents come first, and with them bases that the
  // caller does not ask for but whose views it gets.
  std::vector<ForwardOutput> outputs;
  std::vector<int32_t> caller_outputs;           // where what the caller asked for is among them
  std::map<graph::NodeId, ViewCall> view_calls;  // of the outputs' view_steps
  // Tangent t comes in as graph input forward_inputs + t. The first are the gradients of as many outputs.
  std::vector<Tangent> tangents;
  // Of the tangents with outputs the last are those of views of inputs or of other outputs that lie between
  // results: parts of their own, whose backward pass is that of the view.
  size_t views = 0;
  // The last tangents come into SeparateBackward::joins, which are no outputs.
  size_t joins = 0;
  std::vector<size_t> made;  // the tangents in the order in which the program made their results
  std::vector<Gradient> gradients;
  std::vector<bool> keeps_input;  // by forward input: as ForwardOutput::is_kept
  std::vector<Kept> kept;         // by tangent
  // Why running the recorded operators again under autograd would not give the results their histories; empty
  // if it would.
  std::string why_not_again;

  // Outputs before this one have tangents.
  size_t with_tangents() const { return tangents.size() - joins; }
  // Outputs before this one have places in autograd's graph that are not those of views.
  size_t carriers() const { return with_tangents() - views; }
};

}  // namespace oxy::autograd
