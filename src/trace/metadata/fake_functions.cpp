#include "trace/metadata/fake_functions.h"

#include <Python.h>

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "cpy/gil.h"
#include "runtime/values/convert.h"
#include "torch_api/error_text.h"
#include "trace/tensors/raising_function.h"
#include "trace/tensors/trace_error.h"

namespace oxy::trace {

namespace {

using cpy::Ref;

// A temporary recording for the time of a fake function. Only the metadata of its results are used.
class FakeRecording {
 public:
  // `outer`: whose symbols are those of the arguments' sizes. What the function asks about them is guarded
  // there.
  explicit FakeRecording(const Session& outer) : outer_(recording_session()), was_paused_(session_paused()) {
    session_.id = new_session_id();
    session_.symbols = outer.symbols;
    session_.is_fake = true;
    session_.meta_of = [graph = &session_.recording.graph](graph::ValueId id) -> const TensorMeta& {
      return graph->meta(id);
    };
    set_current_session(&session_);
  }
  ~FakeRecording() {
    set_current_session(outer_);
    pause_session(was_paused_);
  }
  FakeRecording(const FakeRecording&) = delete;
  FakeRecording& operator=(const FakeRecording&) = delete;

  at::Tensor stand_in(const at::Tensor& tensor) {
    if (!tensor.defined() || tensor.unsafeGetTensorImpl()->is_wrapped_number()) return tensor;
    return session_.make_tensor(session_.recording.graph.add_input(runtime::metadata_of(tensor)),
                                tensor.is_inference());
  }

  c10::IValue stand_in(const c10::IValue& value) {
    if (value.isTensor()) return stand_in(value.toTensor());
    if (value.isTensorList()) {
      std::vector<at::Tensor> list = value.toTensorVector();
      for (at::Tensor& tensor : list) tensor = stand_in(tensor);
      return list;
    }
    if (value.isOptionalTensorList()) {
      c10::List<std::optional<at::Tensor>> list;
      for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorVector())
        list.push_back(tensor ? std::optional(stand_in(*tensor)) : std::nullopt);
      return list;
    }
    return value;
  }

 private:
  Session session_;
  Session* outer_;
  bool was_paused_;
};

// `module.attribute`, or null without an exception.
Ref attribute_of(const char* module, const char* attribute) {
  const Ref imported = Ref::steal(PyImport_ImportModule(module));
  Ref found = imported ? Ref::steal(PyObject_GetAttrString(imported.get(), attribute)) : Ref();
  if (!found) PyErr_Clear();
  return found;
}

Ref attribute_of(const Ref& object, const char* attribute) {
  Ref found = object ? Ref::steal(PyObject_GetAttrString(object.get(), attribute)) : Ref();
  if (!found) PyErr_Clear();
  return found;
}

bool is_marked_as_effectful(const std::string& name) {
  const Ref registry = attribute_of("torch._library.simple_registry", "singleton");
  const Ref entry =
      registry ? Ref::steal(PyObject_CallMethod(registry.get(), "find", "s", name.c_str())) : Ref();
  if (!entry) PyErr_Clear();
  const Ref effect = attribute_of(attribute_of(entry, "effect"), "effect");
  return effect && effect != Py_None;
}

bool needs_fake_function(const OperatorSchema& op) {
  return std::ranges::any_of(op.returns, [](const ReturnInfo& result) { return !result.is_written; });
}

// Whether the operator has a function for tensors without data: one that is registered for them, or a kernel
// for all devices.
bool has_fake_function(const OperatorInfo& info) {
  using Key = c10::DispatchKey;
  const cpy::WithGil gil;
  if (const Ref custom = custom_op_object(info.schema->name)) {
    // A custom_op() always registers a function. It calls the one in this attribute, if there is one.
    const Ref fake = attribute_of(custom, "_abstract_fn");
    return !fake || fake != Py_None;
  }
  return info.handle.hasKernelForDispatchKey(Key::Meta) ||
         (needs_fake_function(*info.schema) &&
          info.handle.hasKernelForDispatchKey(Key::CompositeExplicitAutograd) &&
          !is_marked_as_effectful(info.schema->name));
}

[[noreturn]] void refuse(const OperatorSchema& op, const std::exception& error) {
  const std::string_view text = torch_api::error_text(error);
  const std::string_view line = text.substr(0, text.find('\n'));
  if (raising_function(error) == "error_on_ctx")  // the stand-in for torch.library.get_ctx()
    throw_cannot_trace(fmt::format("the shape of a result of {} depends on data", op.name));
  if (is_cannot_trace(error))
    throw_cannot_trace(fmt::format("the fake function of {} cannot be run: {}", op.name, line));
  throw_cannot_trace(fmt::format("the fake function of {} raises {}", op.name, line));
}

ResultMetadata run(const Session& session, const OperatorInfo& info, std::span<const c10::IValue> call) {
  const OperatorSchema& op = *info.schema;
  const Device device = result_device(call);
  FakeRecording recording(session);
  const at::NoGradGuard no_grad;
  torch::jit::Stack stack;
  stack.reserve(call.size());
  for (const c10::IValue& value : call) stack.push_back(recording.stand_in(value));
  try {
    info.handle.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::Meta), &stack);
  } catch (const std::exception& error) {
    if (is_internal_trace_error(error)) throw;
    refuse(op, error);
  }
  for (const c10::IValue& value : stack)
    if (!value.isTensor() && !value.isTensorList())
      throw_cannot_trace(fmt::format("the fake function of {} returns no tensor", op.name));
  return metadata_of_returned(stack, [&](const at::Tensor& tensor, size_t r) -> std::optional<TensorMeta> {
    if (op.returns[r].is_written) return std::nullopt;
    TensorMeta meta = runtime::metadata_of(tensor);
    if (meta.device.kind == Device::Kind::Meta) meta.device = device;
    if (op.returns[r].alias_set < 0) meta.storage_offset = 0;
    return meta;
  });
}

// All that a fake function can know of the arguments, as a key.
FakeCall asked_of(const Session& session, const OperatorSchema& op,
                  const std::vector<graph::Argument>& args) {
  FakeCall call{.op = &op, .args = args, .metas = {}, .result = {}};
  const auto take = [&](graph::ValueId& id) {
    if (id == graph::kNoValue) return;
    call.metas.push_back(session.recording.graph.meta(id));
    id = graph::ValueId(0);
  };
  for (graph::Argument& argument : call.args) {
    if (auto* ref = std::get_if<graph::ValueRef>(&argument)) take(ref->id);
    if (auto* list = std::get_if<graph::ValueList>(&argument)) std::ranges::for_each(list->ids, take);
  }
  return call;
}

}  // namespace

Ref custom_op_object(const std::string& name) {
  const Ref known = attribute_of("torch._library.custom_ops", "OPDEFS");
  Ref found = known ? Ref::steal(PyObject_CallMethod(known.get(), "get", "s", name.c_str())) : Ref();
  if (!found) PyErr_Clear();
  return found == Py_None ? Ref() : found;
}

ResultMetadata fake_metadata(Session& session, const OperatorInfo& info,
                             const std::vector<graph::Argument>& args, std::span<const c10::IValue> call) {
  const OperatorSchema& op = *info.schema;
  if (!has_fake_function(info)) {
    if (needs_fake_function(op))
      throw_cannot_trace(
          fmt::format("{0} has no fake function, which tells the shapes of its results without running it; "
                      "register one with torch.library.register_fake(\"{0}\")",
                      op.name));
    ResultMetadata result;
    result.tensors.resize(op.returns.size());
    result.others.resize(op.returns.size());
    return result;
  }
  FakeCall asked = asked_of(session, op, args);
  for (const FakeCall& known : session.fake_calls)
    if (known.op == asked.op && known.args == asked.args && known.metas == asked.metas) return known.result;
  ++session.recording.meta_fallbacks;
  session.recording.meta_fallback_names.push_back(op.name);
  asked.result = run(session, info, call);
  session.fake_calls.push_back(std::move(asked));
  return session.fake_calls.back().result;
}

}  // namespace oxy::trace
