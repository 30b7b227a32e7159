// The recorder's boxed fallback. The dispatcher calls it for every operator on a trace tensor, and for every
// other operator on a recording thread.
#include "trace/recorder/dispatch.h"

#include <ATen/Context.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <ATen/ops/broadcast_tensors.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/index.h>
#include <ATen/ops/scalar_tensor.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/graph_task.h>
#include <torch/library.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <span>
#include <string>

#include "aten/opaque.h"
#include "aten/operators.h"
#include "base/error.h"
#include "ops/core/registry.h"
#include "runtime/device/current.h"
#include "runtime/device/device.h"
#include "runtime/extern/interpreted_operators.h"
#include "runtime/extern/recurrent.h"
#include "runtime/values/convert.h"
#include "runtime/values/host.h"
#include "runtime/values/tensors.h"
#include "torch_api/symbolic_object.h"
#include "trace/composites/composites.h"
#include "trace/equivalents/equivalents.h"
#include "trace/functional/functional_forms.h"
#include "trace/metadata/metadata.h"
#include "trace/recorder/opaque_calls.h"
#include "trace/recorder/recorder.h"
#include "trace/session/data_reads.h"
#include "trace/session/element_expressions.h"
#include "trace/session/operator_info.h"
#include "trace/session/session.h"
#include "trace/tensors/dispatch_key.h"
#include "trace/tensors/trace_error.h"

namespace oxy::trace {

namespace {

using torch::jit::Stack;

std::span<const c10::IValue> arguments_of(const OperatorInfo& info, const Stack& stack) {
  return std::span(stack).last(info.is_tensor_argument.size());
}

template <class Fn>
void for_each_tensor(const OperatorInfo& info, std::span<const c10::IValue> call, const Fn& fn) {
  for (size_t i = 0; i < call.size(); ++i) {
    if (!info.is_tensor_argument[i]) continue;
    const c10::IValue& value = call[i];
    if (value.isTensor()) {
      if (value.toTensor().defined()) fn(value.toTensor());
    } else if (value.isList()) {
      for (const c10::IValue& item : value.toListRef())
        if (item.isTensor() && item.toTensor().defined()) fn(item.toTensor());
    }
  }
}

enum class Operands : uint8_t { None, Real, Trace };

Operands operands_of(const OperatorInfo& info, std::span<const c10::IValue> call) {
  Operands result = Operands::None;
  if (!info.has_tensor_argument) return result;
  for_each_tensor(info, call, [&](const at::Tensor& tensor) {
    if (tensor.key_set().has(kTraceKey))
      result = Operands::Trace;
    else if (result == Operands::None)
      result = Operands::Real;
  });
  return result;
}

// A call on real tensors may be given symbols: PyTorch makes a tensor without a meaning of an int where a
// tensor is expected (torch.div(x.size(0), 2)). Then it is a call on trace tensors: numbers are arguments of
// nodes beside tensors; of numbers alone each symbol becomes a tensor.
bool takes_symbols(const Session& session, const OperatorInfo& info, Stack* stack) {
  if (!session.symbols) return false;
  bool has_symbols = false, has_tensors = false;
  const std::span<c10::IValue> call = std::span(*stack).last(info.handle.schema().arguments().size());
  const auto symbol_of = [](const c10::IValue& value) -> std::optional<c10::SymInt> {
    if (!value.isTensor() || !value.toTensor().defined()) return std::nullopt;
    const at::Tensor& tensor = value.toTensor();
    const bool is_number = tensor.unsafeGetTensorImpl()->is_wrapped_number() &&
                           tensor.scalar_type() == at::kLong && runtime::is_on_host(tensor);
    return is_number ? torch_api::wrapped_symbolic_integer(tensor) : std::nullopt;
  };
  for (const c10::IValue& value : call) {
    has_symbols = has_symbols || symbol_of(value);
    has_tensors = has_tensors || (value.isTensor() && value.toTensor().defined() &&
                                  !value.toTensor().unsafeGetTensorImpl()->is_wrapped_number());
  }
  if (!has_symbols || has_tensors) return has_symbols;
  for (c10::IValue& value : call)
    if (const auto symbol = symbol_of(value))
      value = at::scalar_tensor(c10::Scalar(*symbol), at::TensorOptions(at::kLong));
  return true;
}

// Runs an operator on real tensors alone: eager work of the program, or of a finaliser that happens to run
// now.
void run_in_eager(Session* session, const OperatorInfo& info, c10::DispatchKeySet keys, Stack* stack) {
  bool all_fresh = session != nullptr;
  if (session != nullptr)
    for_each_tensor(info, arguments_of(info, *stack), [&](const at::Tensor& tensor) {
      c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
      all_fresh &= impl->is_wrapped_number() || session->fresh.contains(impl);
    });
  {
    const c10::impl::ExcludeDispatchKeyGuard below(kTraceKeySet);
    info.handle.redispatchBoxed(keys.remove(kTraceKey), stack);
  }
  if (all_fresh)
    runtime::for_each_returned_tensor(*stack, info.handle.schema().returns().size(),
                                      [&](const at::Tensor& tensor) {
                                        if (tensor.defined())
                                          session->fresh.emplace(tensor.unsafeGetTensorImpl(), tensor);
                                      });
}

// The arguments of a call as the graph has them. `history`: that of the node, which is filled in.
std::vector<graph::Argument> graph_arguments(Session& session, const OperatorInfo& info,
                                             std::span<const c10::IValue> call, NodeHistory& history) {
  history.grad_mode = at::GradMode::is_enabled() && !c10::InferenceMode::is_enabled();
  const auto value_of = [&](const at::Tensor& tensor) {
    if (history.grad_mode || is_opaque(*info.schema)) history.requires_grad.push_back(tensor.requires_grad());
    return session.value_of(tensor);
  };
  std::vector<graph::Argument> args;
  args.reserve(call.size());
  for (size_t i = 0; i < call.size(); ++i)
    args.push_back(runtime::argument_from_ivalue(call[i], info.schema->arguments[i], value_of));
  return args;
}

// Whether autograd would record a history for the call. (The recorder itself runs below autograd.)
bool reaches_autograd(std::span<const c10::IValue> call) {
  if (!at::GradMode::is_enabled() ||
      c10::impl::tls_is_dispatch_key_excluded(runtime::autograd_key(runtime::device_type_of(call))))
    return false;
  return std::ranges::any_of(
      call, [](const c10::IValue& value) { return value.isTensor() && value.toTensor().requires_grad(); });
}

// Whether the memory of the value belongs to an input or a constant.
bool comes_from_outside(const graph::Graph& graph, graph::ValueId value) {
  for (;;) {
    const graph::NodeId producer = graph.values[value].node;
    if (producer == graph::kNoNode) return true;
    const graph::Node& node = graph.nodes[producer];
    const int alias_set = node.op->returns.empty() ? -1 : node.op->returns[0].alias_set;
    const auto argument = std::ranges::find_if(
        node.op->arguments, [&](const ArgumentInfo& info) { return info.alias_set == alias_set; });
    if (alias_set < 0 || argument == node.op->arguments.end()) return false;
    const auto* base =
        std::get_if<graph::ValueRef>(&node.args[static_cast<size_t>(argument - node.op->arguments.begin())]);
    if (base == nullptr) return true;  // one of a list
    value = base->id;
  }
}

// A view without a history may not be written to, as in eager. If the program has used it before, it got its
// history by that.
void check_unrecorded_view(const Session& session, const at::Tensor& tensor) {
  const auto found = session.unrecorded_views.find(tensor.unsafeGetTensorImpl());
  if (found == session.unrecorded_views.end() || !at::GradMode::is_enabled()) return;
  const graph::ValueId value = trace_tensor(tensor)->value();
  bool is_used = false;
  for (const graph::Node& node : session.recording.graph.nodes)
    graph::for_each_input(node, [&](graph::ValueId id) { is_used = is_used || id == value; });
  if (!is_used) throw_cannot_trace("a view is written to that was made before its tensor required grad");
  found->second.grad_fn();
}

void check_written_arguments(const Session& session, const OperatorInfo& info,
                             std::span<const c10::IValue> call) {
  for (size_t i = 0; i < call.size(); ++i) {
    if (!info.schema->arguments[i].is_written) continue;
    // If the operator had a kernel of autograd's, that kernel would have refused it.
    if (is_out_argument(info.schema->arguments[i]) && reaches_autograd(call))
      throw_cannot_trace(fmt::format("{} writes a result that requires grad", info.schema->name));
    const auto refuse_real = [&](const at::Tensor& tensor) {
      if (tensor.defined() && trace_tensor(tensor) == nullptr)
        throw_cannot_trace(
            fmt::format("{} writes to a tensor that is no input of the graph", info.schema->name));
      if (tensor.defined() && tensor._is_zerotensor())
        throw_cannot_trace(fmt::format("{} writes to a ZeroTensor", info.schema->name));
      if (tensor.defined()) check_unrecorded_view(session, tensor);
      // Autograd must not notice writes to `x.data`.
      if (const TraceTensor* trace = trace_tensor(tensor);
          trace && trace->is_data() && !tensor.is_inference() &&
          comes_from_outside(session.recording.graph, trace->value()))
        throw_cannot_trace(fmt::format("{} writes to the .data of a tensor", info.schema->name));
    };
    if (call[i].isTensor()) refuse_real(call[i].toTensor());
    if (call[i].isTensorList())
      for (const at::Tensor& tensor : call[i].toTensorVector()) refuse_real(tensor);
  }
}

bool makes_inference_tensor(const OperatorInfo& info, std::span<const c10::IValue> call, size_t result) {
  if (!c10::InferenceMode::is_enabled()) return false;
  const int alias = info.schema->returns[result].alias_set;
  for (size_t i = 0; i < call.size() && alias >= 0; ++i)
    if (info.schema->arguments[i].alias_set == alias && call[i].isTensor())
      return call[i].toTensor().is_inference();
  return true;
}

// The trace tensor whose memory a result shares; null if there is none.
const TraceTensor* base_of_result(const OperatorInfo& info, std::span<const c10::IValue> call,
                                  size_t result) {
  const int alias_set = info.schema->returns[result].alias_set;
  for (size_t i = 0; i < call.size() && alias_set >= 0; ++i)
    if (info.schema->arguments[i].alias_set == alias_set && call[i].isTensor())
      if (const TraceTensor* base = trace_tensor(call[i].toTensor())) return base;
  return nullptr;
}

// Makes the dtype of a factory explicit, so that its result does not depend on the default dtype when the
// graph runs.
void fix_default_dtype(const OperatorInfo& info, std::vector<graph::Argument>& args,
                       const ResultMetadata& metadata) {
  for (size_t i = 0; i < args.size(); ++i)
    if (info.schema->arguments[i].kind == ArgumentKind::DType &&
        std::holds_alternative<graph::None>(args[i]) && !metadata.tensors.empty() && metadata.tensors[0])
      args[i] = metadata.tensors[0]->dtype;
}

// Throws CannotTrace if the backward pass would read a workspace whose size the library knows only at run
// time.
void check_workspace(const OperatorInfo& info, std::span<const c10::IValue> call) {
  if (!ops::traits_of(*info.schema).keeps_workspace || !at::GradMode::is_enabled()) return;
  if (std::ranges::any_of(call, [](const c10::IValue& value) {
        return value.isTensor() && value.toTensor().defined() && value.toTensor().requires_grad();
      }))
    throw_cannot_trace(
        fmt::format("{} keeps a workspace of unknown size for its backward pass", info.schema->name));
}

// Asks for the first result, too.
c10::IValue with_first_result(const c10::IValue& output_mask) {
  c10::List<bool> mask = output_mask.toBoolList().copy();
  mask.set(0, true);
  return mask;
}

void record(Session& session, const OperatorInfo& info, Stack* stack) {
  if (ops::traits_of(*info.schema).needs_first_result) stack->back() = with_first_result(stack->back());
  const std::span<const c10::IValue> call = arguments_of(info, *stack);
  check_workspace(info, call);
  if (info.schema->is_mutating()) check_written_arguments(session, info, call);
  NodeHistory history;
  std::vector<graph::Argument> args = graph_arguments(session, info, call, history);
  if (is_opaque(*info.schema)) {
    std::vector<c10::IValue> results =
        record_opaque(session, info, std::move(args), std::move(history), call);
    torch::jit::drop(*stack, call.size());
    for (c10::IValue& value : results) stack->push_back(std::move(value));
    return;
  }
  ResultMetadata metadata = result_metadata(session, info, args, call);
  const size_t returns = info.schema->returns.size();
  if (!info.has_tensor_argument) fix_default_dtype(info, args, metadata);

  // A written argument that is returned keeps its own metadata.
  if (info.schema->is_mutating()) {
    std::vector<std::optional<TensorMeta>> kept;
    for (size_t r = 0; r < returns; ++r) {
      const int32_t argument = info.returned_argument[r];
      if (argument >= 0)
        kept.emplace_back(session.meta_of(std::get<graph::ValueRef>(args[static_cast<size_t>(argument)]).id));
      else if (r < metadata.tensors.size())
        kept.push_back(metadata.tensors[r]);
    }
    metadata.tensors = std::move(kept);
  }
  const graph::NodeId node = session.add_node(info.schema, std::move(args), std::move(metadata.tensors));
  session.recording.graph.nodes[node].computed = std::move(metadata.computed);
  session.recording.histories.resize(session.recording.graph.nodes.size());
  if (std::ranges::find(history.requires_grad, true) == history.requires_grad.end())
    history.requires_grad.clear();
  session.recording.histories.back() = std::move(history);
  const std::vector<graph::ValueId> outputs = session.recording.graph.nodes[node].outputs;

  std::vector<c10::IValue> results;
  results.reserve(returns);
  size_t next = 0;
  size_t next_list = 0;
  for (size_t r = 0; r < returns; ++r) {
    const bool inference = makes_inference_tensor(info, call, r);
    const TraceTensor* base = base_of_result(info, call, r);
    const auto make = [&] {
      const graph::ValueId id = outputs.at(next++);
      if (id == graph::kNoValue) return at::Tensor();
      at::Tensor made = session.make_tensor(id, inference);
      if (base != nullptr && base->is_data()) trace_tensor(made)->become_data();
      if (base != nullptr && base->_is_zerotensor()) trace_tensor(made)->become_zero_tensor();
      return made;
    };
    if (info.returned_argument[r] >= 0) {
      ++next;
      results.push_back(call[static_cast<size_t>(info.returned_argument[r])]);
    } else if (info.schema->returns[r].kind == ArgumentKind::Tensor) {
      results.emplace_back(make());
    } else if (info.schema->returns[r].kind == ArgumentKind::TensorList) {
      c10::List<at::Tensor> list;
      const size_t count = metadata.list_sizes.at(next_list++);
      for (size_t i = 0; i < count; ++i) list.push_back(make());
      results.emplace_back(std::move(list));
    } else {
      results.push_back(metadata.others.at(r));
    }
  }
  torch::jit::drop(*stack, call.size());
  for (c10::IValue& value : results) stack->push_back(std::move(value));
}

void record_view_in_place(Session& session, const OperatorInfo& info, Stack* stack) {
  const at::Tensor self = arguments_of(info, *stack)[0].toTensor();
  TraceTensor* trace = trace_tensor(self);
  if (trace == nullptr || session.input_of.contains(trace))
    throw_cannot_trace(
        fmt::format("{} changes the shape of a tensor that existed before", info.schema->name));
  record(session, operator_info(*info.replacement), stack);
  const TraceTensor* view = trace_tensor(stack->back().toTensor());
  check(view != nullptr, "a view of a trace tensor is one");
  trace->become(session.recording.graph.meta(view->value()), view->value());
  stack->back() = self;
}

// `x[i] = 2` arrives as fill_ with a temporary tensor. Puts the number itself in its place. What is known of
// operators lives for ever.
// NOLINTBEGIN(bugprone-return-const-ref-from-parameter)
const OperatorInfo& simplify(const Session& session, const OperatorInfo& info, Stack* stack) {
  if (info.schema != op::fill_with_tensor()) return info;
  const std::optional<c10::Scalar> number = session.temporary_number(stack->back().toTensor());
  if (!number) return info;
  static const OperatorInfo& fill_with_number = operator_info(runtime::handle_of(*op::fill_with_number()));
  stack->back() = *number;
  return fill_with_number;
}
// NOLINTEND(bugprone-return-const-ref-from-parameter)

// If all operands are known values, runs the operator at once. Its results are constants of the recording.
bool answer_from_known_values(Session& session, const OperatorInfo& info, std::span<const c10::IValue> call,
                              Stack* stack) {
  if (info.schema->is_mutating()) return false;  // it would write to tensors of the program
  Stack known(call.begin(), call.end());
  for (size_t i = 0; i < known.size(); ++i) {
    if (!info.is_tensor_argument[i] || known[i].isNone()) continue;
    const TraceTensor* trace = known[i].isTensor() ? trace_tensor(known[i].toTensor()) : nullptr;
    const std::optional<at::Tensor> elements =
        trace && trace->recording() == session.id ? known_value(session, trace->value()) : std::nullopt;
    if (!elements) return false;
    known[i] = *elements;
  }
  {
    const Recorder::Pause pause;
    const at::NoGradGuard no_grad;
    info.handle.callBoxed(&known);
  }
  for (c10::IValue& result : known)
    if (result.isTensor() && result.toTensor().defined()) result = session.constant(result.toTensor());
  torch::jit::drop(*stack, std::min(stack->size(), call.size()));
  for (c10::IValue& result : known) stack->push_back(std::move(result));
  return true;
}

void answer_now(Session& session, const OperatorInfo& info, c10::DispatchKeySet keys, Stack* stack) {
  if (info.schema == op::is_pinned()) {  // what has no storage yet is in pageable memory
    torch::jit::drop(*stack, info.is_tensor_argument.size());
    stack->push_back(false);
    return;
  }
  const std::span<const c10::IValue> arguments = arguments_of(info, *stack);
  const Stack call(arguments.begin(), arguments.end());
  const size_t below_call = stack->size() - call.size();
  try {
    const c10::impl::ExcludeDispatchKeyGuard below(kKeysOfTracing);
    info.handle.redispatchBoxed(keys.remove(kTraceKey), stack);
  } catch (const std::exception& error) {
    if (!is_cannot_trace(error)) throw;
    stack->resize(below_call);
    stack->insert(stack->end(), call.begin(), call.end());
    if (answer_from_known_values(session, info, call, stack)) return;
    throw_cannot_trace(fmt::format("the result of {} depends on data", info.handle.schema().name()));
  }
}

void lift(Session& session, const OperatorInfo& info, Stack* stack) {
  const at::Tensor tensor = arguments_of(info, *stack)[0].toTensor();
  if (trace_tensor(tensor) != nullptr) return;  // it is on the stack already, and is its own result
  stack->back() = session.constant(tensor);
}

// What torch.use_deterministic_algorithms() puts into memory that nothing has been written to
// (torch.utils.deterministic.fill_uninitialized_memory): NaN, or the largest integer.
void fill_if_deterministic(const at::Tensor& tensor) {
  auto& context = at::globalContext();
  if (!context.deterministicAlgorithms() || !context.deterministicFillUninitializedMemory()) return;
  const at::ScalarType type = tensor.scalar_type();
  if (at::isFloatingType(type) || at::isComplexType(type))
    tensor.fill_(std::numeric_limits<double>::quiet_NaN());
  else if (type == at::kBool)
    tensor.fill_(true);
  else if (type == at::kByte || type == at::kChar || type == at::kShort || type == at::kInt ||
           type == at::kLong)
    tensor.fill_(
        static_cast<int64_t>((uint64_t{1} << (8 * tensor.itemsize() - (type == at::kByte ? 0 : 1))) - 1));
}

// The kernels for ZeroTensors, which gradients may be, ask the meta device for shapes: by x.to(device), which
// becomes _to_copy.
bool is_asked_for_shape(const OperatorInfo& info, const c10::Device& device) {
  return device.is_meta() && torch::autograd::get_current_graph_task_id() != -1 &&
         (info.schema == op::to_copy() || info.treatment == Treatment::Decompose);
}

void answer_shape(const OperatorInfo& info, Stack* stack) {
  const std::span<const c10::IValue> call = arguments_of(info, *stack);
  const at::Tensor& tensor = call[0].toTensor();
  if (tensor.unsafeGetTensorImpl()->has_symbolic_sizes_strides())
    throw_cannot_trace("a gradient is a ZeroTensor of a size that changes");
  const c10::ScalarType dtype = call[1].isNone() ? tensor.scalar_type() : call[1].toScalarType();
  const c10::impl::ExcludeDispatchKeyGuard below(kKeysOfTracing);
  at::Tensor meta = at::empty_strided(tensor.sizes(), tensor.strides(),
                                      at::TensorOptions(dtype).device(c10::DeviceType::Meta));
  torch::jit::drop(*stack, call.size());
  stack->emplace_back(std::move(meta));
}

void record_computed_shape(Session& session, const OperatorInfo& info, Stack* stack) {
  const std::span<const c10::IValue> call = arguments_of(info, *stack);
  if (has_known_shape(info, call)) return record(session, info, stack);
  if (answer_from_known_values(session, info, call, stack)) return;
  give_size(session, info, stack);
  if (has_known_shape(info, call)) return record(session, info, stack);
  if (!session.symbols || !session.reads_data)
    throw_cannot_trace(fmt::format("the shape of the result of {} depends on data", info.schema->name));
  if (info.schema == op::masked_select()) {
    const std::vector<at::Tensor> alike = at::broadcast_tensors({call[0].toTensor(), call[1].toTensor()});
    at::Tensor selected = at::index(alike[0], {alike[1]});
    torch::jit::drop(*stack, call.size());
    return stack->push_back(std::move(selected));
  }
  if (ops::traits_of(*info.schema).known_size == ops::KnownSize::WithoutMasks) {
    stack->back() = without_masks(session, call[0].toTensor(), call[1].toOptionalTensorList());
    return record(session, info, stack);
  }
  if (info.rule == nullptr)
    throw_cannot_trace(fmt::format("the shape of the result of {} depends on data", info.schema->name));
  record(session, info, stack);
}

void handle(Session& session, const OperatorInfo& info, c10::DispatchKeySet keys, Stack* stack) {
  const LayoutAtHand layout(false);
  const std::string& name = info.handle.schema().name();
  for (c10::IValue& value : std::span(*stack).last(info.handle.schema().arguments().size())) {
    if (!value.isDevice() || value.toDevice().type() == runtime::kHost) continue;
    if (runtime::find_device(value.toDevice().type()) != nullptr) {
      value = runtime::with_index(value.toDevice());
      continue;
    }
    if (is_asked_for_shape(info, value.toDevice())) {
      if (info.treatment == Treatment::Decompose) continue;
      return answer_shape(info, stack);
    }
    // A fake function may make tensors without data itself.
    if (session.is_fake && value.toDevice().is_meta()) return run_in_eager(&session, info, keys, stack);
    throw_cannot_trace(fmt::format("{} is given the device {}", name, value.toDevice().str()));
  }
  switch (info.treatment) {
    case Treatment::Decompose:
      info.handle.redispatchBoxed(
          c10::DispatchKeySet(runtime::autograd_key(runtime::device_type_of(arguments_of(info, *stack)))),
          stack);
      return;
    case Treatment::Record: {
      if (info.replacement) {
        const std::span<const c10::IValue> call = arguments_of(info, *stack);
        const bool writes = call[5].toBool() && call[3].isTensor() && call[3].toTensor().defined();
        if (writes) return record(session, operator_info(*info.replacement), stack);
      }
      record(session, simplify(session, info, stack), stack);
      if (ops::traits_of(*info.schema).is_uninitialised) fill_if_deterministic(stack->back().toTensor());
      return;
    }
    case Treatment::Rename:
      record(session, operator_info(*info.replacement), stack);
      if (ops::traits_of(*info.schema).recording == ops::Recording::ZeroTensor)
        trace_tensor(stack->back().toTensor())->become_zero_tensor();
      session.recording.histories.back().is_unsafe_view =
          session.recording.graph.nodes.back().op->is_view() && !info.schema->is_view();
      return;
    case Treatment::Lift:
      return lift(session, info, stack);
    case Treatment::ViewInPlace:
      return record_view_in_place(session, info, stack);
    case Treatment::AnswerNow:
      return answer_now(session, info, keys, stack);
    case Treatment::NeedsData:
      if (answer_from_known_values(session, info, arguments_of(info, *stack), stack)) return;
      if (answer_from_expressions(session, info, stack)) return;
      if (ops::traits_of(*info.schema).recording == ops::Recording::Number)
        return record_number(session, info, stack);
      throw_cannot_trace(fmt::format("the result of {} depends on data", name));
    case Treatment::DynamicShape:
      return record_computed_shape(session, info, stack);
    case Treatment::Refuse:
      if (info.replacement && torch::autograd::get_current_graph_task_id() != -1)
        return record(session, operator_info(*info.replacement), stack);
      throw_cannot_trace(fmt::format("{} cannot be traced: {}", name, info.reason));
  }
}

// A float of sizes beside the tensor: of float64, as kernels take numbers, or of the type of a tensor without
// dimensions.
at::Tensor tensor_of_float(const torch_api::FloatOfSizes& number, const at::Tensor& beside) {
  const auto as_double = [&](const c10::SymInt& integer) {
    return at::scalar_tensor(c10::Scalar(integer), at::TensorOptions(at::kDouble).device(beside.device()));
  };
  const at::Tensor ratio = as_double(number.numerator).div(as_double(number.denominator));
  const at::Tensor power = number.exponent == 1 ? ratio : ratio.pow(number.exponent);
  const at::Tensor result = number.factor == 1 ? power : power.mul(number.factor);
  return beside.dim() > 0 && at::elementSize(beside.scalar_type()) < 4 ? result
                                                                       : result.to(beside.scalar_type());
}

// A product with a float of sizes, or a quotient by one, as gradients and scales make them: of a quotient of
// sizes a product and a quotient of integers, which are symbols.
bool scale_by_float_of_sizes(const OperatorInfo& info, Stack* stack) {
  const bool multiplies = info.schema == op::mul_by_number();
  if (!multiplies && info.schema != op::div_by_number()) return false;
  const c10::IValue& factor = torch::jit::peek(*stack, 1, 2);
  if (!factor.isScalar() || !factor.toScalar().isSymbolic() || !factor.toScalar().isFloatingPoint())
    return false;
  const auto quotient = torch_api::float_of_sizes(factor.toScalar().toSymFloat());
  const at::Tensor self = torch::jit::peek(*stack, 0, 2).toTensor();
  if (!quotient || !at::isFloatingType(self.scalar_type())) return false;
  const auto& [numerator, denominator, power_factor, exponent] = *quotient;
  at::Tensor result;
  if (power_factor == 1 && exponent == 1) {
    result = self.mul(c10::Scalar(multiplies ? numerator : denominator))
                 .div(c10::Scalar(multiplies ? denominator : numerator));
  } else {
    const at::Tensor number = tensor_of_float(*quotient, self);
    result = multiplies ? self.mul(number) : self.div(number);
  }
  torch::jit::drop(*stack, 2);
  stack->emplace_back(std::move(result));
  return true;
}

void on_call(const c10::OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) {
  const OperatorInfo& info = operator_info(op);
  Session* session = current_session();
  Operands operands = operands_of(info, arguments_of(info, *stack));
  if (operands == Operands::Real && session != nullptr && takes_symbols(*session, info, stack))
    operands = Operands::Trace;
  const bool is_factory = operands == Operands::None && info.returns_tensor && !info.has_tensor_argument;
  const bool is_lift = info.treatment == Treatment::Lift;
  // The kernel of such an operator has to run at each call, even if all its operands are known.
  const bool is_of_program = info.schema != nullptr && is_opaque(*info.schema);
  if (operands != Operands::Trace && (session == nullptr || (!is_factory && !is_lift && !is_of_program)))
    return run_in_eager(session, info, keys, stack);
  if (session == nullptr)
    throw_cannot_trace(fmt::format("a trace tensor reached {} outside its recording", op.schema().name()));
  try {
    if (!scale_by_float_of_sizes(info, stack)) handle(*session, info, keys, stack);
  } catch (const Unsupported& error) {
    throw_cannot_trace(fmt::format("{}: {}", op.schema().name(), error.what()));
  } catch (const InternalError& error) {
    throw_internal_trace_error(error.what());
  }
}

}  // namespace

void install_recorder() {
  static const torch::Library* library = [] {
    auto* fallback = new torch::Library(torch::Library::IMPL, "_", kTraceKey, __FILE__, __LINE__);
    fallback->fallback(torch::CppFunction::makeFromBoxedFunction<&on_call>());
    auto& own = *new torch::Library(torch::Library::FRAGMENT, "oxyfuel", std::nullopt, __FILE__, __LINE__);
    runtime::add_recurrent_backward(own);
    runtime::add_interpreted_operators(own, [](const char* name) {
      const ops::OperatorEntry* entry = ops::find(std::string("oxyfuel::") + name);
      check(entry != nullptr, "an operator that is interpreted is in no table");
      return std::string(entry->schema);
    });
    add_equivalents(*new torch::Library(torch::Library::IMPL, "aten", kTraceKey, __FILE__, __LINE__));
    for (const c10::DeviceType type : runtime::device_types()) {
      auto& library =
          *new torch::Library(torch::Library::IMPL, "aten", runtime::autograd_key(type), __FILE__, __LINE__);
      add_composites(library);
    }
    return fallback;
  }();
  static_cast<void>(library);
}

}  // namespace oxy::trace
