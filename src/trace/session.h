// The state of the recording under way on a thread.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "graph/graph.h"
#include "trace/known_values.h"
#include "trace/recorder.h"
#include "trace/result_metadata.h"
#include "trace/trace_tensor.h"

namespace oxy::trace {

// A call of an opaque operator and what its fake function said.
struct FakeCall {
  const OperatorSchema* op = nullptr;
  std::vector<graph::Argument> args;  // without the numbers of values
  std::vector<TensorMeta> metas;      // of the tensors among them
  ResultMetadata result;
};

struct Session {
  uint64_t id = 0;
  Recording recording;
  bool strict_shapes = false;
  bool is_fake = false;         // what is recorded is a fake function, and only its results' metadata count
  bool autocast_cache = false;  // to be restored
  bool ran_backward = false;    // the program ran a backward pass itself: what it went through may be spent
  bool has_opaque_calls = false;
  // Their nodes, and what they returned: what autograd knows of a call is seen by that alone, as a formula of
  // the program's records it outside of its own operators' view.
  std::vector<std::pair<graph::NodeId, at::Tensor>> opaque_results;
  std::unordered_map<c10::TensorImpl*, graph::ValueId> constant_of;
  std::unordered_map<c10::TensorImpl*, int32_t> input_of;
  // Real tensors computed while recording from nothing that existed before: their data cannot change between
  // runs.
  std::unordered_map<c10::TensorImpl*, at::Tensor> fresh;
  std::vector<at::Tensor> inputs;  // keeps the input trace tensors alive
  std::unordered_map<graph::ValueId, c10::TensorImpl*>
      tensor_of;  // of inputs and outputs: who stands for the value
  std::function<graph::LocationId(graph::Graph&)> location;
  std::function<const TensorMeta&(graph::ValueId)> meta_of;
  KnownValues known;
  std::vector<FakeCall> fake_calls;

  // The value that stands for a tensor in this recording: a trace tensor's own, a real tensor's constant.
  // CannotTrace for the trace tensor of another recording.
  graph::ValueId value_of(const at::Tensor& tensor);
  // The number in a zero-dimensional constant that no Python object stands for, so that nobody else can write
  // to it: a literal of the program (`x[i] = 2`).
  std::optional<c10::Scalar> temporary_number(const at::Tensor& tensor) const;
  // A trace tensor for a real one that was computed while recording from nothing that may change.
  at::Tensor constant(const at::Tensor& tensor);
  // Makes `tensor` the next graph output.
  void add_output(const at::Tensor& tensor);
  // A new trace tensor for `value`.
  at::Tensor make_tensor(graph::ValueId value, bool inference);
  // Appends a node; outputs without metadata are undefined tensors (kNoValue).
  graph::NodeId add_node(const OperatorSchema* op, std::vector<graph::Argument> args,
                         std::vector<std::optional<TensorMeta>> outputs);
};

// Names a recording.
uint64_t new_session_id();
// The recording that is under way on this thread and not paused, or nullptr.
Session* current_session();
Session* recording_session();  // also while it is paused
// Starts recording into `session` on this thread, or stops (nullptr): factory functions follow.
void set_current_session(Session* session);
bool session_paused();
void pause_session(bool on);

}  // namespace oxy::trace
