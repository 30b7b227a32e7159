#include "runtime/extern/program_operators.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <fmt/format.h>
#include <torch/library.h>

#include <algorithm>
#include <mutex>
#include <unordered_map>

#include "aten/opaque.h"
#include "runtime/device/autocast.h"
#include "runtime/values/convert.h"
#include "runtime/values/host.h"

namespace oxy::runtime {

namespace {

using torch::jit::Stack;

constexpr const char* kLibrary = "oxyfuel_functional";

struct FunctionalCall {
  const OperatorSchema* op = nullptr;
  std::optional<at::ScalarType> autocast;
  const OperatorSchema* form = nullptr;
};

struct Registry {
  std::mutex mutex;
  torch::Library library{torch::Library::FRAGMENT, kLibrary, std::nullopt, __FILE__, __LINE__};
  std::unordered_map<std::string, FunctionalCall> by_name;  // of the form, without the library; never moved
  std::unordered_map<const OperatorSchema*, const FunctionalCall*> by_form;
};

// Never destroyed: the dispatcher may call what is registered until the process ends.
Registry& registry() {
  static auto& instance = *new Registry;
  return instance;
}

const FunctionalCall& call_behind(const std::string& qualified_name) {
  Registry& r = registry();
  const std::scoped_lock lock(r.mutex);
  return r.by_name.at(qualified_name.substr(qualified_name.find("::") + 2));
}

bool has_aliases(const OperatorSchema& op) {
  return op.is_mutating() ||
         std::ranges::any_of(op.returns, [](const ReturnInfo& r) { return r.alias_set >= 0; });
}

c10::IValue copied(const c10::IValue& value) {
  if (value.isTensor()) return value.toTensor().defined() ? copy_as_it_lies(value.toTensor()) : value;
  if (value.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const at::Tensor& tensor : value.toTensorVector())
      list.push_back(tensor.defined() ? copy_as_it_lies(tensor) : tensor);
    return list;
  }
  if (value.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> list;
    for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorVector())
      list.push_back(tensor ? std::optional(copy_as_it_lies(*tensor)) : std::nullopt);
    return list;
  }
  return value;
}

void run(const c10::OperatorHandle& form, Stack* stack) {
  const FunctionalCall& call = call_behind(form.schema().name());
  const size_t count = call.op->arguments.size();
  Stack arguments(stack->end() - static_cast<int64_t>(count), stack->end());
  torch::jit::drop(*stack, count);
  for (c10::IValue& argument : arguments) argument = copied(argument);
  Stack results = arguments;
  {
    const UnderAutocast autocast(device_type_of(arguments), call.autocast);
    handle_of(*call.op).callBoxed(results);
  }
  for (size_t r = 0; r < call.op->returns.size(); ++r)
    if (!call.op->returns[r].is_written) stack->push_back(std::move(results[r]));
  for (size_t i = 0; i < count; ++i)
    if (call.op->arguments[i].is_written)
      stack->push_back(arguments[i].isNone() ? c10::IValue(at::Tensor()) : std::move(arguments[i]));
}

c10::FunctionSchema functional_schema(const c10::FunctionSchema& schema, const OperatorSchema& op,
                                      std::string name) {
  std::vector<c10::Argument> arguments, returns;
  for (const c10::Argument& a : schema.arguments())
    arguments.emplace_back(a.name(), a.type(), a.real_type(), a.N(), a.default_value(), a.kwarg_only());
  for (size_t r = 0; r < op.returns.size(); ++r)
    if (!op.returns[r].is_written) returns.emplace_back("", schema.returns()[r].type());
  for (const ArgumentInfo& a : op.arguments) {
    if (!a.is_written) continue;
    const bool is_list = a.kind == ArgumentKind::TensorList;
    returns.emplace_back("", is_list ? c10::TypePtr(c10::ListType::ofTensors()) : c10::TensorType::get());
  }
  return c10::FunctionSchema(std::move(name), "", std::move(arguments), std::move(returns));
}

// A name that no other form has: an operator of the same name may have been another one.
std::string new_name(const Registry& r, const OperatorSchema& op, std::optional<at::ScalarType> autocast) {
  std::string base = op.name;
  if (autocast) base += fmt::format("_{}", c10::toString(*autocast));
  for (char& c : base)
    if (c == ':' || c == '.') c = '_';
  std::string name = base;
  for (int i = 2; r.by_name.contains(name); ++i) name = fmt::format("{}_{}", base, i);
  return name;
}

}  // namespace

const OperatorSchema* functional_call(const OperatorSchema& op, std::optional<at::ScalarType> autocast) {
  if (!has_aliases(op) && !autocast) return &op;
  const c10::OperatorHandle handle = handle_of(op);
  Registry& r = registry();
  const std::scoped_lock lock(r.mutex);
  for (const auto& [name, call] : r.by_name)
    if (call.op == &op && call.autocast == autocast) return call.form;
  const std::string name = new_name(r, op, autocast);
  const std::vector<at::Tag> tags =
      op.is_random ? std::vector{at::Tag::nondeterministic_seeded} : std::vector<at::Tag>();
  r.library.def(functional_schema(handle.schema(), op, name), tags);
  r.library.impl(name.c_str(), c10::DispatchKey::CompositeImplicitAutograd,
                 torch::CppFunction::makeFromBoxedFunction<&run>());
  const auto form =
      c10::Dispatcher::singleton().findSchemaOrThrow(fmt::format("{}::{}", kLibrary, name).c_str(), "");
  const FunctionalCall& call = r.by_name[name] = {&op, autocast, schema_of(form)};
  r.by_form.emplace(call.form, &call);
  return call.form;
}

// Schemas live for ever.
const OperatorSchema& called_operator(const OperatorSchema& op) {
  if (!is_opaque(op)) return op;  // NOLINT(bugprone-return-const-ref-from-parameter)
  Registry& r = registry();
  const std::scoped_lock lock(r.mutex);
  const auto known = r.by_form.find(&op);
  return known == r.by_form.end() ? op : *known->second->op;
}

at::Tensor copy_as_it_lies(const at::Tensor& tensor) {
  if (tensor.is_non_overlapping_and_dense() || tensor.numel() == 0) return tensor.clone();
  int64_t last = 0;
  for (int64_t d = 0; d < tensor.dim(); ++d) last += (tensor.size(d) - 1) * tensor.stride(d);
  const at::Tensor memory = tensor.as_strided({last + 1}, {1}, tensor.storage_offset()).clone();
  return memory.as_strided(tensor.sizes(), tensor.strides(), 0);
}

}  // namespace oxy::runtime
