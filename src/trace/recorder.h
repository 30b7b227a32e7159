// Trace tensors and the recorder: torch functions called for real on trace tensors become graph nodes (bet 2).
#pragma once

#include <Python.h>

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace oxy::trace {

// Thrown through the dispatcher when a recorded operator needs data that does not exist while tracing
// (`.item()`, bool(tensor), nonzero) or cannot be recorded. Reaches Python as the exception type `trace_error()`.
class CannotTrace : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct Recording {
  graph::Graph graph;                 // as recorded: views and in-place operators are nodes of their own
  std::vector<at::Tensor> constants;  // by handle
  int64_t meta_fallbacks = 0;         // operators whose metadata came from PyTorch's meta kernels
  std::vector<std::string> meta_fallback_names;
};

// Records on the constructing thread, from construction until finish() or destruction; not nested (a nested one
// throws InternalError). While it lives, factory functions called on this thread make trace tensors too.
class Recorder {
 public:
  Recorder();
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // A trace tensor that stands for `real` (new reference): same sizes, strides, dtype, device, requires_grad,
  // Python class (Parameter or another plain subclass) and is_leaf. Becomes the next graph input.
  PyObject* add_input(PyObject* real);
  // The graph input that `trace` was made for, -1 if it is not an input's own trace tensor.
  int32_t input_index(PyObject* trace) const;
  // The value behind a trace tensor of this recording; kNoValue for anything else.
  graph::ValueId value_of(PyObject* tensor) const;
  // Where recorded nodes come from: called once a node to name the user's line; -1 for unknown.
  void set_location(std::function<int32_t(graph::Graph&)> location);
  // Suspends recording on this thread while it lives: calls on real tensors run in eager.
  class Pause {
   public:
    Pause();
    ~Pause();
   private:
    bool was_on_;
  };
  // Ends the recording. `outputs` are trace tensors (borrowed). Mutated inputs and aliases are left as recorded:
  // functionalise() (trace/functionalise.h) turns the graph into a functional one.
  Recording finish(const std::vector<PyObject*>& outputs);
};

bool is_trace_tensor(PyObject* object);
// The Python exception class raised for CannotTrace (borrowed).
PyObject* trace_error();

}  // namespace oxy::trace
