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
#include "trace/trace_error.h"

namespace torch::autograd {
enum class CreationMeta : uint8_t;
}

namespace oxy::trace {

struct Session;

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
  IdVector<graph::NodeId, NodeHistory> histories;
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
  // Where recorded nodes come from: called once a node to name the user's line; none for unknown.
  void set_location(std::function<graph::LocationId(graph::Graph&)> location);
  size_t node_count() const;
  graph::NodeId next_node() const;
  // A node from `first_node` on writes to a tensor that an earlier one has made, or that comes from outside.
  bool writes_to_older(graph::NodeId first_node) const;
  // Whether elements of `result` were computed from elements of `source`; both are trace tensors.
  bool follows_from(PyObject* result, PyObject* source) const;
  // What is recorded so far, for those who record more than calls (src/autograd). Until the recording ends.
  Session& session() const;
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
  // The same, with outputs that `add_outputs` adds to the graph; it returns the first node that is
  // not the program's.
  using AddOutputs = std::function<graph::NodeId(Session&, const std::vector<at::Tensor>&)>;
  Recording finish(const std::vector<PyObject*>& outputs, const AddOutputs& add_outputs);

 private:
  void end();
  std::unique_ptr<Session> session_;
};

bool is_trace_tensor(PyObject* object);
// A recording is under way on this thread, or paused.
bool is_recording();

}  // namespace oxy::trace
