#include "trace/session/session.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <atomic>

#include "aten/operators.h"
#include "base/error.h"
#include "cpy/gil.h"
#include "runtime/values/convert.h"
#include "runtime/values/host.h"
#include "trace/session/set_aside.h"
#include "trace/tensors/dispatch_key.h"
#include "trace/tensors/trace_error.h"

namespace oxy::trace {

namespace {

thread_local Session* current = nullptr;
thread_local bool paused = false;

bool has_python_object(const at::Tensor& tensor) {
  return tensor.unsafeGetTensorImpl()->pyobj_slot()->load_pyobj() != nullptr;
}

// Whether PyTorch has made the tensor from a number in the program's text, without a call of the dispatcher.
bool is_number_in_disguise(const at::Tensor& tensor) {
  return tensor.dim() == 0 && runtime::is_on_host(tensor) && !has_python_object(tensor);
}

}  // namespace

uint64_t new_session_id() {
  static std::atomic<uint64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

int& PartOfRecording::depth() {
  thread_local int value = 0;
  return value;
}

Session* current_session() {
  return paused ? nullptr : current;
}
Session* recording_session() {
  return current;
}
void set_current_session(Session* session) {
  current = session;
  pause_session(false);
}
bool session_paused() {
  return paused;
}
void pause_session(bool on) {
  paused = on;
  include_tracing_key(current != nullptr && !on);
}

at::Tensor Session::constant(const at::Tensor& tensor) {
  fresh.emplace(tensor.unsafeGetTensorImpl(), tensor);
  return make_tensor(value_of(tensor), c10::InferenceMode::is_enabled());
}

graph::ValueId Session::value_of(const at::Tensor& tensor) {
  if (const TraceTensor* trace = trace_tensor(tensor)) {
    if (trace->recording() != id) throw_cannot_trace("a trace tensor of another recording is used");
    const auto is_size = [this](const c10::SymInt& size, const Expr& known) {
      const Expr own = torch_api::expression_of(size);
      return own == known || (symbols && symbols->environment.simplify(own - known) == Expr(0));
    };
    if (!std::ranges::equal(tensor.sym_sizes(), recording.graph.meta(trace->value()).sizes, is_size))
      throw_cannot_trace("a tensor is given another shape in place");
    return trace->value();
  }
  const auto [it, inserted] = constant_of.try_emplace(tensor.unsafeGetTensorImpl(), graph::kNoValue);
  if (!inserted) return it->second;
  if (tensor.requires_grad() && at::GradMode::is_enabled()) {
    constant_of.erase(it);
    throw_cannot_trace("a tensor that requires grad is used without being an input of the graph");
  }
  const auto handle = static_cast<int32_t>(recording.constants.size());
  it->second = recording.graph.add_constant(runtime::metadata_of(tensor), handle);
  recording.constants.push_back(tensor);
  if (!fresh.contains(tensor.unsafeGetTensorImpl()) && !is_number_in_disguise(tensor))
    recording.foreign_constants.push_back(handle);
  return it->second;
}

std::optional<c10::Scalar> Session::temporary_number(const at::Tensor& tensor) const {
  if (!is_number_in_disguise(tensor)) return std::nullopt;
  const at::Tensor* data = &tensor;
  if (const TraceTensor* trace = trace_tensor(tensor)) {
    const auto& constants = recording.graph.constants;
    const auto it = std::find_if(constants.begin(), constants.end(),
                                 [&](const graph::Constant& c) { return c.value == trace->value(); });
    if (it == constants.end()) return std::nullopt;
    data = &recording.constants[static_cast<size_t>(it->handle)];
  }
  const c10::impl::ExcludeDispatchKeyGuard below(kKeysOfTracing);
  return data->item();
}

void Session::add_output(const at::Tensor& tensor) {
  graph::Graph& graph = recording.graph;
  graph::ValueId value = value_of(tensor);
  // `x.data` and `x.detach()` stand for x's value but are tensors of their own.
  if (const auto [it, first] = tensor_of.emplace(value, tensor.unsafeGetTensorImpl());
      !first && it->second != tensor.unsafeGetTensorImpl()) {
    const TensorMeta meta = graph.meta(value);
    const graph::NodeId node = add_node(op::alias(), {graph::ValueRef{value}}, {meta});
    value = graph.nodes[node].outputs[0];
  }
  graph.outputs.push_back({.value = value});
}

at::Tensor Session::make_tensor(graph::ValueId value, bool inference) {
  const TensorMeta& meta = recording.graph.meta(value);
  const c10::DispatchKeySet keys = trace_keys(runtime::device_to_torch(meta.device), inference);
  return at::detail::make_tensor<TraceTensor>(keys, meta, id, value, symbols);
}

graph::NodeId Session::add_node(const OperatorSchema* op, std::vector<graph::Argument> args,
                                std::vector<std::optional<TensorMeta>> outputs) {
  graph::Graph& graph = recording.graph;
  graph::LocationId line;
  if (location) {
    // The callback reads Python objects, but PyTorch's bindings drop the GIL around operators.
    const cpy::WithGil gil;
    line = location(graph);
  }
  std::vector<graph::ValueId> ids;
  ids.reserve(outputs.size());
  for (std::optional<TensorMeta>& meta : outputs) {
    if (!meta) {
      ids.push_back(graph::kNoValue);
      continue;
    }
    ids.push_back(graph.add_value(std::move(*meta)));
    graph.values.back().node = graph.nodes.next_id();
  }
  return graph.nodes.add(
      graph::Node{.op = op, .args = std::move(args), .outputs = std::move(ids), .location = line});
}

}  // namespace oxy::trace
