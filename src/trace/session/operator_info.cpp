#include "trace/session/operator_info.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

#include "aten/opaque.h"
#include "base/error.h"
#include "runtime/values/convert.h"
#include "trace/functional/functional_forms.h"

namespace oxy::trace {

namespace {

std::string_view without_overload(std::string_view name) {
  return name.substr(0, name.find('.', name.find("::") == std::string_view::npos ? 0 : name.find("::")));
}

// Nothing if torch has no operator of that name.
std::optional<c10::OperatorHandle> find_operator(std::string_view name) {
  const std::string_view base = without_overload(name);
  const std::string_view overload = name.substr(std::min(name.size(), base.size() + 1));
  return c10::Dispatcher::singleton().findSchema({std::string(base), std::string(overload)});
}

const OperatorSchema* find_counterpart(const OperatorSchema& op) {
  if (const ops::OperatorEntry& entry = ops::entry_of(op); !entry.functional.empty()) {
    const auto handle = find_operator(entry.functional);
    if (handle && takes_the_same_arguments(*runtime::schema_of(*handle), op))
      return runtime::schema_of(*handle);
  }
  const std::string base = functional_base_name(op);
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

void classify_by_tags(OperatorInfo& info) {
  const OperatorSchema& schema = *info.schema;
  if (info.handle.hasTag(at::Tag::data_dependent_output)) {
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
}

void classify(OperatorInfo& info) {
  const OperatorSchema& schema = *info.schema;
  if (is_opaque(schema)) return classify_opaque(info);
  const ops::Traits& traits = ops::traits_of(schema);
  if (!traits.declared_as.empty()) info.replacement = find_operator(traits.declared_as);
  switch (traits.recording) {
    case ops::Recording::Node:
      return classify_by_tags(info);
    case ops::Recording::Check:
    case ops::Recording::Whole:
      return;
    case ops::Recording::Literal:
      info.treatment = Treatment::Lift;
      return;
    case ops::Recording::OtherOperator:
    case ops::Recording::ZeroTensor:
      info.treatment = Treatment::Rename;
      info.replacement = find_operator(traits.recorded_as);
      return;
    case ops::Recording::LazyBit:
      info.replacement = find_operator(traits.recorded_as);
      return refuse(info, "its result is conjugated or negated lazily");
    case ops::Recording::SwapsStorage:
      return refuse(info, "it changes the storage of a tensor");
    case ops::Recording::NeedsData:
    case ops::Recording::Number:
      info.treatment = Treatment::NeedsData;
      return;
  }
}

void find_rule(OperatorInfo& info) {
  const ops::OperatorEntry* entry = &ops::entry_of(*info.schema);
  info.rule_schema = info.schema;
  const OperatorSchema* functional =
      info.schema->is_mutating() ? functional_counterpart(*info.schema) : nullptr;
  if (!entry->shape && functional != nullptr) {
    entry = &ops::entry_of(*functional);
    info.rule_schema = functional;
    info.drops_out_arguments = functional->arguments.size() != info.schema->arguments.size();
  }
  if (entry->shape) info.rule = entry;
}

// PyTorch decomposes it on the CPU as well: where a kernel of its own exists, that one is eager's.
bool is_decomposed(const c10::OperatorHandle& op) {
  using Key = c10::DispatchKey;
  return op.hasKernelForDispatchKey(Key::CompositeImplicitAutograd) &&
         !op.hasKernelForDispatchKey(Key::CPU) &&
         !op.hasKernelForDispatchKey(Key::CompositeExplicitAutograd) &&
         !op.hasKernelForDispatchKey(Key::CompositeExplicitAutogradNonFunctional);
}

bool is_no_decomposition(const c10::OperatorHandle& op) {
  const c10::OperatorName& name = op.operator_name();
  const ops::OperatorEntry* entry =
      ops::find(name.overload_name.empty() ? name.name : name.name + "." + name.overload_name);
  return entry != nullptr && (entry->traits.recording == ops::Recording::SwapsStorage ||
                              entry->traits.recording == ops::Recording::Whole);
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
  if (is_decomposed(op) && !is_no_decomposition(op)) {
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
