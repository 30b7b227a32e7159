#include "runtime/extern/general.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <fmt/format.h>

#include <unordered_map>

#include "aten/opaque.h"
#include "base/error.h"
#include "runtime/extern/program_operators.h"
#include "runtime/values/convert.h"

namespace oxy::runtime {

namespace {

// Values stand for slots here.
graph::Argument with_slots(const plan::CallArgument& argument, const std::vector<Slot>& slots) {
  return std::visit(
      [&](const auto& value) -> graph::Argument {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, plan::View>)
          return graph::ValueRef{graph::ValueId(slots.at(0))};
        else if constexpr (std::is_same_v<T, std::vector<std::optional<plan::View>>>)
          return graph::ValueList{{slots.begin(), slots.end()}};
        else
          return value;
      },
      argument);
}

// Overloads by operator name, read once: the dispatcher can only be asked for exact names.
const std::unordered_map<std::string, std::vector<c10::OperatorName>>& overloads() {
  static const auto table = [] {
    std::unordered_map<std::string, std::vector<c10::OperatorName>> result;
    for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames())
      result[name.name].push_back(name);
    return result;
  }();
  return table;
}

bool is_written(const c10::Argument& argument) {
  return argument.alias_info() != nullptr && argument.alias_info()->isWrite();
}

// The overload with the arguments of `op` followed by one written tensor a result.
std::optional<c10::OperatorHandle> out_overload(const c10::OperatorHandle& op) {
  const c10::FunctionSchema& schema = op.schema();
  const auto it = overloads().find(schema.name());
  if (it == overloads().end()) return std::nullopt;
  const size_t count = schema.arguments().size();
  for (const c10::OperatorName& name : it->second) {
    const auto candidate = c10::Dispatcher::singleton().findOp(name);
    if (!candidate || !candidate->hasSchema()) continue;
    const auto& arguments = candidate->schema().arguments();
    if (arguments.size() != count + schema.returns().size()) continue;
    bool fits = true;
    for (size_t i = 0; i < count && fits; ++i)
      fits = arguments[i].name() == schema.arguments()[i].name() && !is_written(arguments[i]) &&
             *arguments[i].type() == *schema.arguments()[i].type();
    for (size_t i = count; i < arguments.size() && fits; ++i)
      fits = is_written(arguments[i]) && *arguments[i].type() == *c10::TensorType::get();
    if (fits) return candidate;
  }
  return std::nullopt;
}

struct ListPatch {
  size_t argument;
  std::vector<Slot> slots;
  bool optional;
};

struct GeneralCall {
  c10::OperatorHandle op;
  const OperatorSchema* opaque = nullptr;  // looked up at each call: the program may have defined it anew
  std::vector<c10::IValue> arguments;      // tensors still missing
  std::vector<std::pair<size_t, Slot>> tensors;
  std::vector<ListPatch> lists;
  std::vector<ResultSlot> results;
  std::vector<const TensorSpec*> specs;  // of the results; null: not wanted
  bool writes_out = false;
  bool copies_arguments = false;

  at::Tensor argument(const at::Tensor* table, Slot slot) const {
    if (slot == kNoSlot) return {};
    return copies_arguments ? copy_as_it_lies(table[slot]) : table[slot];
  }

  torch::jit::Stack stack(const at::Tensor* table) const {
    torch::jit::Stack result;
    result.reserve(arguments.size() + results.size());
    result.assign(arguments.begin(), arguments.end());
    for (const auto& [index, slot] : tensors) result[index] = argument(table, slot);
    for (const ListPatch& list : lists) {
      if (list.optional) {
        c10::List<std::optional<at::Tensor>> values;
        for (const Slot slot : list.slots)
          values.push_back(slot == kNoSlot ? std::nullopt : std::optional(argument(table, slot)));
        result[list.argument] = std::move(values);
      } else {
        c10::List<at::Tensor> values;
        for (const Slot slot : list.slots) values.push_back(argument(table, slot));
        result[list.argument] = std::move(values);
      }
    }
    return result;
  }

  // True if the memory of `result` belongs to it alone: operators may return an argument or a view of one.
  bool is_owned(const at::Tensor& result, const torch::jit::Stack& given) const {
    if (!result.has_storage()) return true;
    const auto shares = [&](const at::Tensor& t) {
      return t.defined() && t.has_storage() &&
             t.storage().unsafeGetStorageImpl() == result.storage().unsafeGetStorageImpl();
    };
    for (const auto& [index, slot] : tensors)
      if (given[index].isTensor() && shares(given[index].toTensor())) return false;
    for (const ListPatch& list : lists)
      for (const c10::IValue& item : given[list.argument].toListRef())
        if (item.isTensor() && shares(item.toTensor())) return false;
    return true;
  }

  // By its fake function, which the rest of the region relies upon.
  void check_as_announced(const at::Tensor& result, const TensorSpec& spec) const {
    if (result.defined() && result.scalar_type() == spec.dtype &&
        result.sizes() == c10::IntArrayRef(spec.sizes))
      return;
    throw UserError(fmt::format("{} returns another size or type than its fake function says",
                                called_operator(*opaque).name));
  }

  void operator()(at::Tensor* table) const {
    torch::jit::Stack values = stack(table);
    if (writes_out) {
      for (const ResultSlot& result : results) values.emplace_back(table[result.slot]);
      op.callBoxed(values);
      return;
    }
    const torch::jit::Stack given = values;
    (opaque ? handle_of(*opaque) : op).callBoxed(values);
    size_t next = 0;
    const auto take = [&](const at::Tensor& tensor) {
      if (next < results.size() && results[next].slot != kNoSlot) {
        if (opaque) check_as_announced(tensor, *specs[next]);
        check(tensor.defined(), fmt::format("{} returned no tensor", op.schema().name()));
        deliver(table, results[next], *specs[next], tensor, is_owned(tensor, given));
      }
      ++next;
    };
    for_each_returned_tensor(values, values.size(), take);
    check(next >= results.size(), fmt::format("{} returned {} tensors", op.schema().name(), next));
  }
};

}  // namespace

Invoke prepare_general(const CallSite& site) {
  const OperatorSchema& schema = *site.call.op;
  GeneralCall call{.op = handle_of(schema)};
  if (is_opaque(schema)) call.opaque = &schema;
  // Its kernel may keep what it is given, and the arena is reused. A functional_call() copies by itself.
  call.copies_arguments = is_opaque(schema) && &called_operator(schema) == &schema;
  for (size_t i = 0; i < schema.arguments.size(); ++i) {
    const graph::Argument argument = with_slots(site.call.args[i], site.argument_slots[i]);
    call.arguments.push_back(
        ivalue_from_argument(argument, schema.arguments[i], [](graph::ValueId) { return at::Tensor(); }));
    const std::vector<Slot>& slots = site.argument_slots[i];
    if (std::holds_alternative<graph::ValueRef>(argument))
      call.tensors.emplace_back(i, slots.at(0));
    else if (std::holds_alternative<graph::ValueList>(argument))
      call.lists.push_back({i, slots, schema.arguments[i].kind == ArgumentKind::OptionalTensorList});
  }
  bool all_planned = !site.results.empty() && site.results.size() == schema.returns.size();
  for (size_t i = 0; i < site.results.size(); ++i) {
    call.results.push_back(site.results[i]);
    call.specs.push_back(site.results[i].slot == kNoSlot ? nullptr : &site.spec(site.results[i].slot));
    all_planned &= site.planned(i);
  }
  if (all_planned && !is_opaque(schema))
    if (const auto out = out_overload(call.op)) {
      call.op = *out;
      call.writes_out = true;
    }
  return call;
}

}  // namespace oxy::runtime
