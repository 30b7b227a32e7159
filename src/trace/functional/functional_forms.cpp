#include "trace/functional/functional_forms.h"

#include <fmt/format.h>

#include <array>
#include <mutex>
#include <unordered_map>

#include "ops/core/registry.h"

namespace oxy::trace {

namespace {

struct Forms {
  std::mutex mutex;
  std::unordered_map<const OperatorSchema*, const OperatorSchema*> known;
};

Forms& forms() {
  static Forms instance;
  return instance;
}

size_t overload_position(const std::string& name) {
  const size_t colons = name.find("::");
  return name.find('.', colons == std::string::npos ? 0 : colons);
}

const OperatorSchema* schema_named(const std::string& name) {
  if (const ops::OperatorEntry* entry = ops::find(name)) return ops::schema_of(*entry);
  return find_schema(name);
}

}  // namespace

void remember_functional_form(const OperatorSchema& writing, const OperatorSchema& functional) {
  Forms& f = forms();
  const std::lock_guard lock(f.mutex);
  f.known.emplace(&writing, &functional);
}

bool takes_the_same_arguments(const OperatorSchema& candidate, const OperatorSchema& writing) {
  size_t next = 0;
  for (const ArgumentInfo& argument : writing.arguments) {
    if (is_out_argument(argument)) continue;
    if (next == candidate.arguments.size()) return false;
    const ArgumentInfo& other = candidate.arguments[next++];
    if (other.kind != argument.kind || other.name != argument.name || other.is_written) return false;
  }
  return next == candidate.arguments.size() && !candidate.is_mutating();
}

std::string functional_base_name(const OperatorSchema& writing) {
  std::string base = writing.name.substr(0, overload_position(writing.name));
  if (base.ends_with('_') && !base.ends_with("__")) base.pop_back();
  return base;
}

const OperatorSchema* functional_form(const OperatorSchema& writing) {
  {
    Forms& f = forms();
    const std::lock_guard lock(f.mutex);
    if (const auto it = f.known.find(&writing); it != f.known.end()) return it->second;
  }
  if (const ops::OperatorEntry& entry = ops::entry_of(writing); !entry.functional.empty()) {
    const OperatorSchema* schema = schema_named(std::string(entry.functional));
    if (schema != nullptr && takes_the_same_arguments(*schema, writing)) return schema;
  }
  const size_t dot = overload_position(writing.name);
  std::string overload = dot == std::string::npos ? "" : writing.name.substr(dot + 1);
  if (overload == "out") overload.clear();
  if (overload.ends_with("_out")) overload.resize(overload.size() - 4);
  const std::string base = functional_base_name(writing);
  for (const std::string& candidate : std::to_array<std::string>({overload, "", "Tensor"})) {
    const OperatorSchema* schema =
        schema_named(candidate.empty() ? base : fmt::format("{}.{}", base, candidate));
    if (schema != nullptr && schema != &writing && takes_the_same_arguments(*schema, writing)) return schema;
  }
  return nullptr;
}

}  // namespace oxy::trace
