// The state of a recording, and which recording is under way on a thread. A session belongs to one thread.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "graph/graph.h"
#include "runtime/device/current.h"
#include "torch_api/symbolic_node.h"
#include "trace/session/element_table.h"
#include "trace/session/known_values.h"
#include "trace/session/lost_histories.h"
#include "trace/session/recording.h"
#include "trace/session/result_metadata.h"
#include "trace/tensors/trace_tensor.h"

namespace oxy::trace {

// A call of an opaque operator, and the result of its fake function.
struct FakeCall {
  const OperatorSchema* op = nullptr;
  std::vector<graph::Argument> args;  // without the numbers of values
  std::vector<TensorMeta> metas;      // of the tensors among them
  ResultMetadata result;
};

struct Session {
  // Trace tensors name the recording to which they belong by this number.
  uint64_t id = 0;
  Recording recording;
  bool strict_shapes = false;
  torch_api::SymbolsPointer symbols;  // null: all sizes are numbers
  bool reads_data = true;             // RecorderOptions::reads_data
  bool is_fake = false;         // what is recorded is a fake function, and only its results' metadata count
  bool autocast_cache = false;  // to be restored
  bool ran_backward = false;    // the program ran a backward pass itself: what it went through may be spent
  bool has_opaque_calls = false;
  c10::DeviceIndex device = runtime::current_device_index();  // at the start of the recording
  // Nodes of opaque calls, and the tensors that they returned. These tensors alone tell which history
  // autograd gave to a call: a formula of the program's is applied outside of the call.
  std::vector<std::pair<graph::NodeId, at::Tensor>> opaque_results;
  std::unordered_map<c10::TensorImpl*, graph::ValueId> constant_of;
  std::unordered_map<c10::TensorImpl*, int32_t> input_of;
  // The real tensors of inputs that were views without a history yet when they came in
  // (runtime::is_unrecorded_view).
  std::unordered_map<c10::TensorImpl*, at::Tensor> unrecorded_views;
  // Real tensors that were computed during the recording from nothing that existed before. Their data cannot
  // change between runs.
  std::unordered_map<c10::TensorImpl*, at::Tensor> fresh;
  std::vector<at::Tensor> inputs;   // keeps the input trace tensors alive
  std::vector<InputMemory> memory;  // by input
  std::unordered_map<graph::ValueId, c10::TensorImpl*>
      tensor_of;  // of inputs and outputs: who stands for the value
  // What reshape() copies for sizes in general, and of these what eager does not copy for those of this call.
  std::vector<graph::ValueId> reshaped_copies, copies_of_views;
  std::function<graph::LocationId(graph::Graph&)> location;
  std::function<const TensorMeta&(graph::ValueId)> meta_of;
  KnownValues known;
  ElementTable elements;
  // By symbol: a copy, without dimensions, of the tensor whose number it is.
  std::unordered_map<int64_t, at::Tensor> number_tensors;
  std::vector<FakeCall> fake_calls;

  // The value of a tensor in this recording: that of a trace tensor, or a constant for a real tensor, which
  // is added if needed. Throws CannotTrace for a trace tensor of another recording, and for a real tensor
  // that requires grad.
  graph::ValueId value_of(const at::Tensor& tensor);
  // The number in a tensor without dimensions that has no Python object, so that nobody else can write to it:
  // PyTorch has made it of a literal of the program (`x[i] = 2`). Nothing for other tensors.
  std::optional<c10::Scalar> temporary_number(const at::Tensor& tensor) const;
  // A trace tensor for a real one that belongs to `fresh`, as a constant of the graph.
  at::Tensor constant(const at::Tensor& tensor);
  // Makes `tensor` the next graph output.
  void add_output(const at::Tensor& tensor);
  // A new trace tensor for `value`.
  at::Tensor make_tensor(graph::ValueId value, bool inference);
  // Appends a node. Outputs without metadata are undefined tensors (kNoValue).
  graph::NodeId add_node(const OperatorSchema* op, std::vector<graph::Argument> args,
                         std::vector<std::optional<TensorMeta>> outputs);
};

// A number that no other recording of the process has. Thread-safe.
uint64_t new_session_id();
// The recording that is under way on this thread and not paused, or null.
Session* current_session();
Session* recording_session();  // also while it is paused
// Starts recording into `session` (not owned) on this thread, or stops (null). While recording, all operators
// on the thread reach the recorder, so that factory functions make trace tensors.
void set_current_session(Session* session);
bool session_paused();
void pause_session(bool on);

}  // namespace oxy::trace
