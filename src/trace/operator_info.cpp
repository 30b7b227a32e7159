#include "trace/operator_info.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

#include "aten/opaque.h"
#include "base/error.h"
#include "runtime/values/convert.h"
#include "trace/functional_forms.h"

namespace oxy::trace {

namespace {

using std::string_view_literals::operator""sv;

constexpr auto kLifts = std::to_array({"aten::lift_fresh"sv, "aten::lift"sv});
constexpr auto kSwapsStorage = std::to_array(
    {"aten::set_"sv, "aten::set_data"sv, "aten::resize_"sv, "aten::resize_as_"sv, "aten::_resize_output_"sv,
     "aten::resize_as_sparse_"sv, "aten::sparse_resize_"sv, "aten::sparse_resize_and_clear_"sv});
constexpr auto kNeedsData =
    std::to_array({"aten::_assert_async"sv, "aten::_linalg_check_errors"sv, "aten::is_set_to"sv});

// Operators that write without declaring it, and the operator of the same arguments that declares it.
struct Declared {
  std::string_view name;
  std::string_view declared;
};
constexpr auto kHiddenWrites =
    std::to_array<Declared>({{"aten::native_batch_norm", "aten::_native_batch_norm_legit"}});

// Results with a lazy bit, and what does the same at once: nobody sees the difference in a backward pass.
constexpr auto kLazyBits =
    std::to_array<Declared>({{"aten::_conj", "aten::_conj_physical"}, {"aten::_neg_view", "aten::neg"}});

// Operators recorded as another with the same arguments: results that share memory though the schema does not
// say so, and zeros without any memory, which autograd's formulas make.
constexpr auto kRenamed = std::to_array<Declared>({
    {"aten::unsafe_split.Tensor", "aten::split.Tensor"},
    {"aten::unsafe_split_with_sizes", "aten::split_with_sizes"},
    {"aten::_unsafe_view", "aten::view"},
    {"aten::_efficientzerotensor", "aten::zeros"},
});

// Functional counterparts whose names do not follow from the operator's.
struct Counterpart {
  std::string_view name;
  std::string_view functional;
};
constexpr auto kCounterparts = std::to_array<Counterpart>({
    {"aten::_native_batch_norm_legit", "aten::_native_batch_norm_legit_functional"},
    {"aten::_batch_norm_with_update", "aten::_batch_norm_with_update_functional"},
    {"aten::normal_", "aten::normal_functional"},
});

template <size_t N>
bool contains(const std::array<std::string_view, N>& list, std::string_view name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

std::string_view without_overload(std::string_view name) {
  return name.substr(0, name.find('.', name.find("::") == std::string_view::npos ? 0 : name.find("::")));
}

const OperatorSchema* find_counterpart(const OperatorSchema& op) {
  const ops::OperatorEntry* entry = ops::find(op.name);
  if (entry != nullptr && !entry->functional.empty()) {
    const std::string full(entry->functional);
    const std::string base(without_overload(full));
    const std::string overload = full.size() > base.size() ? full.substr(base.size() + 1) : "";
    const auto handle = c10::Dispatcher::singleton().findSchema({base, overload});
    if (handle && takes_the_same_arguments(*runtime::schema_of(*handle), op))
      return runtime::schema_of(*handle);
  }
  std::string base = functional_base_name(op);
  for (const auto& [name, functional] : kCounterparts)
    if (op.name == name) base = functional;
  for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
    if (name.name != base) continue;
    const auto handle = c10::Dispatcher::singleton().findSchema(name);
    if (!handle) continue;
    try {
      const OperatorSchema* candidate = runtime::schema_of(*handle);
      if (takes_the_same_arguments(*candidate, op)) return candidate;
    } catch (const Unsupported&) {
      continue;
    }
  }
  return nullptr;
}

void refuse(OperatorInfo& info, std::string reason) {
  info.treatment = Treatment::Refuse;
  info.reason = std::move(reason);
}

// Of an operator that is not torch's the schema and the tags say all that is known.
void classify_opaque(OperatorInfo& info) {
  const OperatorSchema& schema = *info.schema;
  const auto is_tensor = [](ArgumentKind kind) {
    return kind == ArgumentKind::Tensor || kind == ArgumentKind::TensorList;
  };
  if (info.handle.hasTag(at::Tag::data_dependent_output) ||
      !std::ranges::all_of(schema.returns, is_tensor, &ReturnInfo::kind))
    return refuse(info, "it returns something else than tensors, which only its kernel can tell");
  if (info.handle.hasTag(at::Tag::dynamic_output_shape))
    return refuse(info, "the shape of its result depends on data");
  if (info.handle.hasTag(at::Tag::inplace_view)) return refuse(info, "it changes the shape of an argument");
  for (size_t r = 0; r < schema.returns.size(); ++r)
    if (schema.returns[r].is_written &&
        (info.returned_argument[r] < 0 || schema.returns[r].kind != ArgumentKind::Tensor))
      return refuse(info, "it returns a list that it writes to");
}

void classify(OperatorInfo& info) {
  const OperatorSchema& schema = *info.schema;
  if (is_opaque(schema)) return classify_opaque(info);
  const std::string_view base = without_overload(schema.name);
  if (contains(kLifts, base)) {
    info.treatment = Treatment::Lift;
  } else if (contains(kSwapsStorage, base)) {
    info.treatment = Treatment::Refuse;
    info.reason = "it changes the storage of a tensor";
  } else if (contains(kNeedsData, base) || info.handle.hasTag(at::Tag::data_dependent_output)) {
    info.treatment = Treatment::NeedsData;
  } else if (info.handle.hasTag(at::Tag::dynamic_output_shape)) {
    info.treatment = Treatment::DynamicShape;
  } else if (info.handle.hasTag(at::Tag::inplace_view)) {
    info.treatment = Treatment::ViewInPlace;
    const OperatorSchema* view = functional_counterpart(schema);
    if (view == nullptr) throw Unsupported(fmt::format("{} has no out-of-place form", schema.name));
    info.replacement = runtime::handle_of(*view);
  } else if (!info.returns_tensor && !schema.is_mutating()) {
    info.treatment = Treatment::AnswerNow;
  }
  for (const auto& [name, declared] : kLazyBits) {
    if (schema.name != name) continue;
    info.treatment = Treatment::Refuse;
    info.reason = "its result is conjugated or negated lazily";
    info.replacement = c10::Dispatcher::singleton().findSchema({std::string(declared), ""});
  }
  for (const auto& [name, declared] : kHiddenWrites)
    if (schema.name == name)
      info.replacement = c10::Dispatcher::singleton().findSchema({std::string(declared), ""});
  for (const auto& [name, declared] : kRenamed) {
    if (schema.name != name) continue;
    const std::string overload(declared.substr(without_overload(declared).size()));
    info.treatment = Treatment::Rename;
    info.replacement = c10::Dispatcher::singleton().findSchema(
        {std::string(without_overload(declared)), overload.empty() ? "" : overload.substr(1)});
  }
}

void find_rule(OperatorInfo& info) {
  const ops::OperatorEntry* entry = ops::find(info.schema->name);
  info.rule_schema = info.schema;
  const OperatorSchema* functional =
      info.schema->is_mutating() ? functional_counterpart(*info.schema) : nullptr;
  if ((entry == nullptr || !entry->shape) && functional != nullptr) {
    entry = ops::find(functional->name);
    info.rule_schema = functional;
    info.drops_out_arguments = functional->arguments.size() != info.schema->arguments.size();
  }
  if (entry != nullptr && entry->shape) info.rule = entry;
}

// PyTorch decomposes it on the CPU as well: where a kernel of its own exists, that one is eager's.
bool is_decomposed(const c10::OperatorHandle& op) {
  using Key = c10::DispatchKey;
  return op.hasKernelForDispatchKey(Key::CompositeImplicitAutograd) &&
         !op.hasKernelForDispatchKey(Key::CPU) &&
         !op.hasKernelForDispatchKey(Key::CompositeExplicitAutograd) &&
         !op.hasKernelForDispatchKey(Key::CompositeExplicitAutogradNonFunctional);
}

OperatorInfo describe(const c10::OperatorHandle& op) {
  OperatorInfo info{.handle = op};
  for (const c10::Argument& argument : op.schema().arguments()) {
    const c10::TypePtr& type = argument.type();
    const std::string text = type->str();
    info.is_tensor_argument.push_back(text.find("Tensor") != std::string::npos);
    info.has_tensor_argument |= info.is_tensor_argument.back();
  }
  for (const c10::Argument& result : op.schema().returns())
    info.returns_tensor |= result.type()->str().find("Tensor") != std::string::npos;
  if (is_decomposed(op) && !contains(kSwapsStorage, std::string_view(op.schema().name()))) {
    info.treatment = Treatment::Decompose;
    return info;
  }
  try {
    info.schema = runtime::schema_of(op);
    for (const ReturnInfo& result : info.schema->returns) {
      int32_t argument = -1;
      for (size_t i = 0; i < info.schema->arguments.size() && result.is_written; ++i)
        if (info.schema->arguments[i].alias_set == result.alias_set) argument = static_cast<int32_t>(i);
      info.returned_argument.push_back(argument);
    }
    classify(info);
    find_rule(info);
  } catch (const Unsupported& error) {
    info.treatment = Treatment::Refuse;
    info.reason = error.what();
  }
  return info;
}

}  // namespace

const OperatorInfo& operator_info(const c10::OperatorHandle& op) {
  struct Cache {
    std::shared_mutex mutex;
    std::unordered_map<c10::OperatorHandle, std::unique_ptr<const OperatorInfo>> known;
  };
  // Never destroyed: torch tells of operators that are removed until the process ends.
  static Cache& cache = []() -> Cache& {
    auto* made = new Cache;
    runtime::on_removed_operator([made](const c10::OperatorHandle& removed) {
      std::unique_lock lock(made->mutex);
      made->known.erase(removed);
    });
    return *made;
  }();
  {
    std::shared_lock lock(cache.mutex);
    if (const auto it = cache.known.find(op); it != cache.known.end()) return *it->second;
  }
  auto info = std::make_unique<const OperatorInfo>(describe(op));
  std::unique_lock lock(cache.mutex);
  return *cache.known.emplace(op, std::move(info)).first->second;
}

const OperatorSchema* functional_counterpart(const OperatorSchema& op) {
  const OperatorSchema* functional = find_counterpart(op);
  if (functional != nullptr) remember_functional_form(op, *functional);
  return functional;
}

}  // namespace oxy::trace
