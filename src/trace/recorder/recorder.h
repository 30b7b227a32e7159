// The recorder: torch functions that are called for real on trace tensors become nodes of a graph.
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
#include "torch_api/symbolic_node.h"
#include "trace/session/known_values.h"
#include "trace/session/recording.h"
#include "trace/tensors/trace_error.h"

namespace oxy::trace {

struct Session;

// Of an input.
enum class Elements : uint8_t {
  Unknown,  // nothing may be said of them
  Known,    // they are those of this call, until the layout varies
  Vary,     // RecorderOptions::varying_elements says it
};

struct RecorderOptions {
  // Also call eager's kernel, on zeros, for every call that has a shape rule. A difference in metadata throws
  // an InternalTraceError that shows both.
  bool strict_shapes = config().strict_shapes;
  // The symbols that the inputs' sizes may contain; null: all are numbers.
  torch_api::SymbolsPointer symbols;
  // Numbers and sizes that only data tell are symbols, too, if there are some. False: they cannot be traced.
  bool reads_data = true;
  VaryingElements varying_elements = VaryingElements::Unknown;
};

// Records on the thread that constructs it, until finish() or its destruction. Recordings do not nest (a
// nested one throws InternalError), and cannot begin under a functorch transform (Unsupported). Factory
// functions on this thread make trace tensors too. Operators on real tensors alone run in eager. Their
// results, and literals (torch.tensor(2.0)), become constants when they meet a trace tensor. Turns autocast's
// cache of casts off until the end. Needs the GIL, but operators may be recorded without it.
class Recorder {
 public:
  explicit Recorder(RecorderOptions options = {});
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // Adds a graph input and gives the trace tensor that stands for `real` (a new reference). It has the same
  // sizes, strides, dtype, device, requires_grad, is_leaf, Python class (Parameter or another plain subclass)
  // and attributes. Throws Unsupported for tensors that the compiler does not support (sparse, quantised,
  // __torch_dispatch__ subclasses). `elements`: what may be said of them, if they are few integers
  // (known_values.h). `layout`: sizes, strides and offset are these, whose values at hand are those of
  // `real`.
  PyObject* add_input(PyObject* real, Elements elements = Elements::Unknown,
                      const TensorMeta* layout = nullptr);
  // The graph inputs whose elements the recording relies on, with copies of the elements.
  std::vector<std::pair<int32_t, at::Tensor>> looked_at() const;
  // The input, an integer without dimensions, stands for this number of the program's.
  void set_number(PyObject* trace, const Expr& number);
  // Whether it would help the program if something were said of elements that vary.
  bool wants_elements() const;
  // Sets the function that makes the symbol of an element of a graph input, by its place in row-major order
  // and its value at this call (VaryingElements::Symbols).
  void set_element_symbols(std::function<Expr(int32_t input, int64_t place, int64_t value)> symbol_of);
  // The elements of a trace tensor, if they are known: a real tensor, not to be written to.
  std::optional<at::Tensor> known_elements(PyObject* trace) const;
  // The number of the graph input whose trace tensor this is; -1 if it is none.
  int32_t input_index(PyObject* trace) const;
  // The value behind a trace tensor of this recording; kNoValue for anything else.
  graph::ValueId value_of(PyObject* tensor) const;
  // Sets the function that gives the location of a node, which may add one to the graph; none: unknown. It is
  // called once a node, with the GIL.
  void set_location(std::function<graph::LocationId(graph::Graph&)> location);
  size_t node_count() const;
  // The integer tensor without dimensions whose number the symbol is; undefined if the symbol is no such
  // number.
  at::Tensor tensor_of_symbol(int64_t id) const;
  // Whether a node computes a symbol.
  bool reads_data() const;
  // The node that will be recorded next.
  graph::NodeId next_node() const;
  // Whether a node from `first_node` on writes to a tensor that an earlier node has made, or to an input or
  // constant.
  bool writes_to_older(graph::NodeId first_node) const;
  // Whether elements of `result` were computed from elements of `source`. Both are trace tensors.
  bool follows_from(PyObject* result, PyObject* source) const;
  // The recording so far, for code that records more than calls (src/autograd). Valid until the recording
  // ends.
  Session& session() const;
  // While one lives, nothing is recorded on this thread: calls on real tensors run in eager.
  class Pause {
   public:
    Pause();
    ~Pause();

   private:
    bool was_on_;
  };
  // Asks what the rest of a program has to know of the layouts of these tensors, which are to be outputs.
  void guard_formats(const std::vector<PyObject*>& outputs) const;
  // Ends the recording. `outputs`: trace tensors, or real ones, which become constants. Writes and views stay
  // as recorded: functionalise() makes the graph functional. Throws Unsupported if a result cannot be an
  // output.
  Recording finish(const std::vector<PyObject*>& outputs);
  // The same, with further outputs that `add_outputs` adds to the graph. It returns the first node that is
  // not the program's own.
  using AddOutputs = std::function<graph::NodeId(Session&, const std::vector<at::Tensor>&)>;
  Recording finish(const std::vector<PyObject*>& outputs, const AddOutputs& add_outputs);

 private:
  void end();
  std::unique_ptr<Session> session_;
};

bool is_trace_tensor(PyObject* object);
// Whether a recording is under way on this thread, also if it is paused.
bool is_recording();

}  // namespace oxy::trace
