#include "trace/recorder/recorder.h"

#include <ATen/autocast_mode.h>
#include <ATen/ops/scalar_tensor.h>
#include <c10/core/InferenceMode.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/functions/basic_ops.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>

#include "base/error.h"
#include "ops/core/registry.h"
#include "runtime/values/convert.h"
#include "runtime/values/tensor_object.h"
#include "runtime/values/tensors.h"
#include "torch_api/autograd_node.h"
#include "trace/metadata/copies.h"
#include "trace/metadata/formats_of_results.h"
#include "trace/metadata/unread_results.h"
#include "trace/recorder/dispatch.h"
#include "trace/session/element_expressions.h"
#include "trace/session/session.h"
#include "trace/session/slices.h"
#include "trace/tensors/dispatch_key.h"
#include "trace/tensors/trace_tensor.h"

namespace oxy::trace {

namespace {

void check_plain(const at::Tensor& tensor) {
  const c10::DispatchKeySet keys = tensor.key_set();
  if (keys.has(c10::DispatchKey::Python)) throw Unsupported("a tensor subclass with __torch_dispatch__");
  if (tensor._is_zerotensor()) throw Unsupported("a ZeroTensor, which has no memory, is an argument");
  if (trace_tensor(tensor) != nullptr) throw Unsupported("a trace tensor as an input of another recording");
  if (keys.has_any(
          c10::DispatchKeySet({c10::DispatchKey::FuncTorchBatched, c10::DispatchKey::FuncTorchGradWrapper,
                               c10::DispatchKey::Functionalize})))
    throw Unsupported("a tensor of a functorch transform");
  if (tensor.is_inference() && tensor.requires_grad() && !c10::InferenceMode::is_enabled())
    throw Unsupported("a tensor that requires grad was made under inference mode");
}

// Gives the Python object of a trace tensor the class and the attributes of the real tensor's.
void dress(PyObject* trace, PyObject* real) {
  if (Py_TYPE(trace) != Py_TYPE(real) &&
      PyObject_SetAttrString(trace, "__class__", reinterpret_cast<PyObject*>(Py_TYPE(real))) != 0) {
    PyErr_Clear();
    throw Unsupported(fmt::format("tensor subclass {}", Py_TYPE(real)->tp_name));
  }
  PyObject** from = _PyObject_GetDictPtr(real);
  if (from == nullptr || *from == nullptr || PyDict_GET_SIZE(*from) == 0) return;
  PyObject* to = PyObject_GenericGetDict(trace, nullptr);
  const bool done = to != nullptr && PyDict_Update(to, *from) == 0;
  Py_XDECREF(to);
  if (!done) throw_python_error();
}

// The argument whose memory an output shares, as the schema says; kNoValue if it has its own.
graph::ValueId aliased_argument(const graph::Node& node, graph::ValueId output) {
  const auto index = static_cast<size_t>(std::ranges::find(node.outputs, output) - node.outputs.begin());
  const OperatorSchema& op = *node.op;
  const int set = op.returns.empty() ? -1 : op.returns[std::min(index, op.returns.size() - 1)].alias_set;
  if (set < 0) return graph::kNoValue;
  for (size_t a = 0; a < op.arguments.size(); ++a) {
    if (op.arguments[a].alias_set != set) continue;
    if (const auto* ref = std::get_if<graph::ValueRef>(&node.args[a])) return ref->id;
    if (const auto* list = std::get_if<graph::ValueList>(&node.args[a]))
      return list->ids.at(std::min(index, list->ids.size() - 1));
  }
  return graph::kNoValue;
}

}  // namespace

Recorder::Recorder(RecorderOptions options) {
  check(current_session() == nullptr && !session_paused(), "recordings do not nest");
  if (inside_functorch())
    throw Unsupported("a compiled function is called under a functorch transform (vmap, grad)");
  install_recorder();
  trace_error();
  internal_trace_error();
  session_ = std::make_unique<Session>();
  session_->id = new_session_id();
  session_->strict_shapes = options.strict_shapes;
  session_->symbols = std::move(options.symbols);
  session_->reads_data = options.reads_data;
  session_->known.of_varying = options.varying_elements;
  session_->autocast_cache = at::autocast::is_autocast_cache_enabled();
  at::autocast::set_autocast_cache_enabled(false);
  session_->meta_of = [graph = &session_->recording.graph](graph::ValueId id) -> const TensorMeta& {
    return graph->meta(id);
  };
  set_current_session(session_.get());
}

Recorder::~Recorder() {
  end();
}

void Recorder::end() {
  if (session_ == nullptr) return;
  set_current_session(nullptr);
  at::autocast::set_autocast_cache_enabled(session_->autocast_cache);
  session_.reset();
}

PyObject* Recorder::add_input(PyObject* real, Elements elements, const TensorMeta* layout) {
  check(session_ != nullptr, "the recording has ended");
  if (!runtime::is_tensor(real)) throw UserError("a graph input must be a tensor");
  const at::Tensor& tensor = runtime::tensor_of(real);
  check_plain(tensor);
  const graph::ValueId value =
      session_->recording.graph.add_input(layout ? *layout : runtime::metadata_of(tensor));
  const at::Tensor trace = session_->make_tensor(value, tensor.is_inference());
  if (tensor.requires_grad()) {
    const bool is_unrecorded = runtime::is_unrecorded_view(tensor);
    if (is_unrecorded) session_->unrecorded_views.emplace(trace.unsafeGetTensorImpl(), tensor);
    if (!is_unrecorded && tensor.grad_fn() == nullptr) {
      trace.set_requires_grad(true);
    } else {
      auto node = torch_api::make_node<torch::autograd::Error>("the graph of an input is not traced");
      node->add_input_metadata(trace);
      torch::autograd::impl::set_gradient_edge(trace, torch::autograd::Edge(std::move(node), 0));
    }
  }
  session_->input_of.emplace(trace.unsafeGetTensorImpl(), static_cast<int32_t>(session_->inputs.size()));
  session_->inputs.push_back(trace);
  session_->memory.push_back(memory_of(tensor));
  session_->tensor_of.emplace(value, trace.unsafeGetTensorImpl());
  if (elements != Elements::Unknown && is_small_integer(tensor)) {
    KnownValues& known = session_->known;
    (elements == Elements::Known && !layout ? known.candidates : known.varying).emplace(value, tensor);
  }
  PyObject* object = runtime::wrap_tensor(trace);
  try {
    dress(object, real);
  } catch (...) {
    Py_DECREF(object);
    throw;
  }
  return object;
}

std::vector<std::pair<int32_t, at::Tensor>> Recorder::looked_at() const {
  const Pause pause;
  std::vector<std::pair<int32_t, at::Tensor>> result;
  const std::vector<graph::ValueId>& inputs = session_->recording.graph.inputs;
  const KnownValues& known = session_->known;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!known.read.contains(inputs[i])) continue;
    const auto& of = known.candidates.contains(inputs[i]) ? known.candidates : known.varying;
    result.emplace_back(static_cast<int32_t>(i), of.at(inputs[i]).detach().clone());
  }
  return result;
}

void Recorder::set_number(PyObject* trace, const Expr& number) {
  check(session_ != nullptr, "a number is set before a recording begins");
  session_->elements.numbers.emplace(value_of(trace), number);
}

bool Recorder::wants_elements() const {
  return session_ != nullptr && session_->known.would_help;
}

void Recorder::set_element_symbols(std::function<Expr(int32_t, int64_t, int64_t)> symbol_of) {
  check(session_ != nullptr, "the recording has ended");
  session_->elements.symbol_of = [this, symbol_of = std::move(symbol_of)](graph::ValueId input, int64_t place,
                                                                          int64_t value) {
    const std::vector<graph::ValueId>& inputs = session_->recording.graph.inputs;
    const auto index = std::ranges::find(inputs, input) - inputs.begin();
    return symbol_of(static_cast<int32_t>(index), place, value);
  };
}

std::optional<at::Tensor> Recorder::known_elements(PyObject* trace) const {
  const graph::ValueId value = value_of(trace);
  if (value == graph::kNoValue) return std::nullopt;
  if (std::optional<at::Tensor> known = known_value(*session_, value)) return known;
  const TensorMeta& meta = session_->recording.graph.meta(value);
  if (meta.dtype != DType::Bool || !meta.sizes.empty()) return std::nullopt;
  const auto elements = element_expressions(*session_, value);
  if (!elements || !elements->front().is_constant()) return std::nullopt;
  const RunsInEager runs_in_eager;
  return at::scalar_tensor(elements->front().constant(), at::kBool);
}

int32_t Recorder::input_index(PyObject* trace) const {
  if (session_ == nullptr || !runtime::is_tensor(trace)) return -1;
  const auto it = session_->input_of.find(runtime::tensor_of(trace).unsafeGetTensorImpl());
  return it == session_->input_of.end() ? -1 : it->second;
}

graph::ValueId Recorder::value_of(PyObject* tensor) const {
  if (session_ == nullptr || !runtime::is_tensor(tensor)) return graph::kNoValue;
  const TraceTensor* trace = trace_tensor(runtime::tensor_of(tensor));
  return trace != nullptr && trace->recording() == session_->id ? trace->value() : graph::kNoValue;
}

void Recorder::set_location(std::function<graph::LocationId(graph::Graph&)> location) {
  check(session_ != nullptr, "the recording has ended");
  session_->location = std::move(location);
}

size_t Recorder::node_count() const {
  check(session_ != nullptr, "the recording has ended");
  return session_->recording.graph.nodes.size();
}

at::Tensor Recorder::tensor_of_symbol(int64_t id) const {
  check(session_ != nullptr, "the recording has ended");
  const auto it = session_->number_tensors.find(id);
  return it == session_->number_tensors.end() ? at::Tensor() : it->second;
}

bool Recorder::reads_data() const {
  check(session_ != nullptr, "the recording has ended");
  return std::ranges::any_of(session_->recording.graph.nodes,
                             [](const graph::Node& node) { return !node.computed.empty(); });
}

graph::NodeId Recorder::next_node() const {
  check(session_ != nullptr, "the recording has ended");
  return session_->recording.graph.nodes.next_id();
}

bool Recorder::writes_to_older(graph::NodeId first_node) const {
  check(session_ != nullptr, "the recording has ended");
  const graph::Graph& graph = session_->recording.graph;
  const auto is_older = [&](graph::ValueId value) {
    while (value != graph::kNoValue) {
      const graph::NodeId node = graph.values[value].node;  // none lies before all
      if (node < first_node) return true;
      value = aliased_argument(graph.nodes[node], value);
    }
    return false;
  };
  for (const graph::NodeId i : graph.nodes.ids_from(first_node)) {
    const graph::Node& node = graph.nodes[i];
    for (size_t a = 0; a < node.op->arguments.size(); ++a) {
      if (!node.op->arguments[a].is_written) continue;
      if (const auto* ref = std::get_if<graph::ValueRef>(&node.args[a]); ref && is_older(ref->id))
        return true;
      if (const auto* list = std::get_if<graph::ValueList>(&node.args[a]);
          list && std::ranges::any_of(list->ids, is_older))
        return true;
    }
  }
  return false;
}

bool Recorder::follows_from(PyObject* result, PyObject* source) const {
  check(session_ != nullptr, "the recording has ended");
  const graph::Graph& graph = session_->recording.graph;
  const graph::ValueId wanted = value_of(source);
  IdVector<graph::ValueId, bool> seen(graph.values.size(), false);
  std::vector<graph::ValueId> stack = {value_of(result)};
  while (!stack.empty()) {
    const graph::ValueId value = stack.back();
    stack.pop_back();
    if (value == wanted) return true;
    if (value == graph::kNoValue || seen[value]) continue;
    seen[value] = true;
    const graph::NodeId node = graph.values[value].node;
    if (node == graph::kNoNode) continue;
    const graph::Node& maker = graph.nodes[node];
    if (ops::traits_of(*maker.op).reads_metadata_only) continue;
    graph::for_each_input(maker, [&](graph::ValueId input) { stack.push_back(input); });
  }
  return false;
}

Session& Recorder::session() const {
  check(session_ != nullptr, "the recording has ended");
  return *session_;
}

Recorder::Pause::Pause() : was_on_(current_session() != nullptr) {
  if (was_on_) pause_session(true);
}

Recorder::Pause::~Pause() {
  if (was_on_) pause_session(false);
}

namespace {

std::vector<at::Tensor> unpack(const std::vector<PyObject*>& objects) {
  std::vector<at::Tensor> tensors;
  for (PyObject* object : objects) {
    if (!runtime::is_tensor(object)) throw UserError("a graph output must be a tensor");
    tensors.push_back(runtime::tensor_of(object));
    if (tensors.back()._is_zerotensor()) throw Unsupported("a ZeroTensor, which has no memory, is a result");
  }
  return tensors;
}

// Throws Unsupported if a write has given an input a new history, which outputs of a graph cannot express.
void check_inputs_keep_history(const Session& session) {
  for (const at::Tensor& input : session.inputs) {
    const auto& begin = input.grad_fn();
    const bool untouched = !begin || dynamic_cast<torch::autograd::Error*>(begin.get()) != nullptr;
    if (!untouched)
      throw Unsupported("an argument is changed in place by what takes part in autograd",
                        "assign the result to a new variable, or do the write under torch.no_grad()");
  }
}

void note_relations(Session& session, const std::vector<at::Tensor>& outputs) {
  for (const at::Tensor& tensor : outputs) {
    const TraceTensor* trace = trace_tensor(tensor);
    session.recording.is_detached.push_back(!tensor.is_view() && !tensor.requires_grad());
    auto& made = session.recording.view_made.emplace_back();
    if (tensor.is_view() && !tensor.requires_grad())
      made = torch::autograd::impl::get_view_autograd_meta(tensor)->get_creation_meta();
    session.recording.is_data.push_back(trace != nullptr && trace->is_data());
  }
}

}  // namespace

void Recorder::guard_formats(const std::vector<PyObject*>& outputs) const {
  trace::guard_formats(*session_, unpack(outputs));
}

Recording Recorder::finish(const std::vector<PyObject*>& outputs) {
  return finish(outputs, [](Session& session, const std::vector<at::Tensor>& tensors) {
    for (const at::Tensor& tensor : tensors) session.add_output(tensor);
    return session.recording.graph.nodes.next_id();
  });
}

Recording Recorder::finish(const std::vector<PyObject*>& outputs, const AddOutputs& add_outputs) {
  check(session_ != nullptr, "the recording has ended");
  session_->location = nullptr;
  check_inputs_keep_history(*session_);
  check_histories_survive(session_->recording.graph, session_->recording.histories, session_->memory);
  const std::vector<at::Tensor> tensors = unpack(outputs);
  const graph::NodeId end_of_program = add_outputs(*session_, tensors);
  note_relations(*session_, tensors);
  guard_copies(*session_, end_of_program);
  Recording result = std::move(session_->recording);
  const torch_api::SymbolsPointer symbols = session_->symbols;
  end();
  check_unread_results(result.graph, end_of_program, symbols.get());
  return result;
}

bool is_recording() {
  return current_session() != nullptr || session_paused();
}

bool is_trace_tensor(PyObject* object) {
  return runtime::is_tensor(object) && trace_tensor(runtime::tensor_of(object)) != nullptr;
}

}  // namespace oxy::trace
