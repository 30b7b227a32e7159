// Trace tensors and the recorder: torch functions called for real on trace tensors become graph nodes.
#pragma once

#include <Python.h>

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/config.h"
#include "graph/graph.h"
#include "trace/inner_backward.h"
#include "trace/trace_error.h"

namespace torch::autograd {
enum class CreationMeta : uint8_t;
}

namespace oxy::trace {

struct Session;

// A result of a recorded call of a view operator.
struct ViewStep {
  int32_t node = -1;
  size_t output = 0;
  graph::ValueId value = graph::kNoValue;
};

struct ViewCall {
  graph::Node node;
  bool grad_mode = true;  // when it was made
};

// What autograd thinks of writes to a result.
enum class ViewState : uint8_t {
  Free,        // no view, or one that may be written to
  Restricted,  // a write to it is an error: one of several that one operator made, or a view made without
               // grad
  Stale,       // likewise, and its memory was written to since: any use of its history is an error
};

// What a recording knows of its backward pass: the nodes from `forward_nodes` on compute gradients.
struct Joint {
  size_t forward_nodes = 0;
  size_t forward_inputs = 0;   // the graph inputs after these are tangents
  size_t forward_outputs = 0;  // the graph outputs after these are gradients
  // Where the caller's outputs are among the graph's: those that have tangents come first, and with them
  // bases that the caller does not ask for but whose views it gets.
  std::vector<int32_t> outputs;
  std::vector<bool> requires_grad;  // by forward output
  // By forward output: the recorded value that it is, and, of a view that requires grad, the operators that
  // made it of the tensor that autograd takes it to be a view of.
  std::vector<graph::ValueId> values;
  std::vector<std::vector<ViewStep>> view_steps;
  std::map<int32_t, ViewCall> view_calls;  // by number of the recorded node: those of view_steps
  std::vector<ViewState> view_states;      // by forward output
  // Tangent t comes in as graph input forward_inputs + t. The first are the gradients of as many outputs.
  size_t tangents = 0;
  // Of the tangents with outputs the last are those of views of inputs or of other outputs that lie between
  // results: parts of their own, whose backward pass is that of the view.
  size_t views = 0;
  // The last tangents come into SeparateBackward::joins, which are no outputs.
  size_t joins = 0;
  // By tangent; trace::SeparateBackward says what they mean.
  std::vector<int32_t> freed_with;
  std::vector<int32_t> part_of_tangent;
  std::vector<bool> part_frees;
  std::vector<size_t> made;  // the tangents in the order in which the program made their results
  struct Gradient {
    int32_t input = -1;   // a graph input that requires grad, or
    int32_t result = -1;  // the number of a tangent: what comes to its place from other parts adds up to it
    int32_t output = -1;  // the graph output that is its gradient; -1: it has none
    std::vector<bool> tangents;  // those that flow into it: where they are undefined, so is the gradient
    std::vector<bool> tangents_of_part;  // those that do if parts have backward passes of their own
  };
  std::vector<Gradient> gradients;
  // By forward output: what eager raises when a gradient of it is asked for, because the program's own
  // backward pass has freed its history; empty for the others.
  std::vector<std::string> spent;
  // By forward output: what it came from, the graph inputs and, as -1 - index, other forward outputs.
  std::vector<std::vector<int32_t>> spent_sources;
  // What eager's own autograd keeps until the backward pass, and checks for writes then: inputs and forward
  // outputs that backward nodes read.
  std::vector<bool> keeps_input;
  std::vector<bool> keeps_output;
  std::map<int32_t, std::vector<bool>> part_keeps_input;  // likewise, by number in part_of_tangent
  std::map<int32_t, std::vector<bool>> part_keeps_output;
  // Why running the recorded operators again under autograd would not give the results their histories; empty
  // if it would.
  std::string why_not_again;

  // Outputs before this one have tangents.
  size_t with_tangents() const { return tangents - joins; }
  // Outputs before this one have places in autograd's graph that are not those of views.
  size_t carriers() const { return with_tangents() - views; }
};

// What autograd was to know of a recorded call.
struct NodeHistory {
  bool grad_mode = false;
  // By tensor that the node reads, in the order of graph::for_each_input, whether it requires grad; empty if
  // none does. `x.detach()` stands for the same value as x.
  std::vector<bool> requires_grad;
};

struct Recording {
  graph::Graph graph;                 // as recorded: views and in-place operators are nodes of their own
  std::vector<at::Tensor> constants;  // by handle
  // Handles of the constants that existed before the recording: their data may change between runs, so that
  // the caller must guard them, make them inputs, or give the recording up.
  std::vector<int32_t> foreign_constants;
  int64_t meta_fallbacks = 0;  // operators whose metadata came from PyTorch's meta kernels
  std::vector<std::string> meta_fallback_names;
  std::vector<NodeHistory> histories;  // by node
  std::optional<Joint> joint;          // if the outputs' gradients were recorded too
  // By output that the caller asked for: if it shares memory, it is no view of that to autograd, as
  // x.detach() is none of x.
  std::vector<bool> is_detached;
  // Likewise: if it is a view without a history, how it was made: some of them may not be written to.
  std::vector<std::optional<torch::autograd::CreationMeta>> view_made;
  // Likewise: if writes to it count apart from those to the memory's other tensors, as those to x.data do.
  std::vector<bool> is_data;
};

struct RecorderOptions {
  // Calls eager's own kernel, on zeros, beside every shape rule; a difference is an InternalTraceError that
  // shows both.
  bool strict_shapes = config().strict_shapes;
};

// Records on the constructing thread, from construction until finish() or destruction; not nested (a nested
// one throws InternalError). While it lives, factory functions called on this thread make trace tensors too.
// Operators on real tensors alone run in eager; their results, and literals (torch.tensor(2.0)), become
// constants when they meet a trace tensor. Needs the GIL, but operators may be recorded without it.
class Recorder {
 public:
  explicit Recorder(RecorderOptions options = {});
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // A trace tensor that stands for `real` (new reference): same sizes, strides, dtype, device, requires_grad,
  // Python class (Parameter or another plain subclass), attributes and is_leaf. Becomes the next graph input.
  // Unsupported for tensors that the compiler does not know (sparse, quantised, __torch_dispatch__
  // subclasses).
  // Where the program looks at what follows from small integers of such an input alone, these are taken for
  // the same at every run if `may_be_known`: looked_at() tells.
  PyObject* add_input(PyObject* real, bool may_be_known = false);
  // The graph inputs whose elements the recording relies on, and copies of these.
  std::vector<std::pair<int32_t, at::Tensor>> looked_at() const;
  // The elements of a trace tensor, if they are known (real, not to be written to).
  std::optional<at::Tensor> known_elements(PyObject* trace) const;
  // The graph input that `trace` was made for, -1 if it is not an input's own trace tensor.
  int32_t input_index(PyObject* trace) const;
  // The value behind a trace tensor of this recording; kNoValue for anything else.
  graph::ValueId value_of(PyObject* tensor) const;
  // Where recorded nodes come from: called once a node to name the user's line; -1 for unknown.
  void set_location(std::function<int32_t(graph::Graph&)> location);
  size_t node_count() const;
  // A node from `first_node` on writes to a tensor that an earlier one has made, or that comes from outside.
  bool writes_to_older(size_t first_node) const;
  // Whether elements of `result` were computed from elements of `source`; both are trace tensors.
  bool follows_from(PyObject* result, PyObject* source) const;
  // Backward passes of the program's own: trace/inner_backward.h.
  std::vector<at::Tensor> leaves_of(const InnerBackward& pass) const;
  void accumulate_gradients(const InnerBackward& pass);
  std::vector<at::Tensor> gradients_of(const InnerBackward& pass);
  // Suspends recording on this thread while it lives: calls on real tensors run in eager.
  class Pause {
   public:
    Pause();
    ~Pause();

   private:
    bool was_on_;
  };
  // Ends the recording. `outputs` are trace tensors, or real ones, which become constants (borrowed). Mutated
  // inputs and aliases are left as recorded: functionalise() (trace/functionalise.h) turns the graph into a
  // functional one.
  Recording finish(const std::vector<PyObject*>& outputs);
  // The same, with the backward pass recorded behind the forward pass by PyTorch's autograd engine: Joint
  // says what is what. Unsupported if gradients flow in a way that a graph with outputs cannot express.
  Recording finish_with_backward(const std::vector<PyObject*>& outputs);

 private:
  void end();
  std::unique_ptr<Session> session_;
};

bool is_trace_tensor(PyObject* object);
// A recording is under way on this thread, or paused.
bool is_recording();

}  // namespace oxy::trace
