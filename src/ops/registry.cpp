#include "ops/registry.h"

#include <fmt/format.h>

#include <unordered_map>

#include "base/error.h"
#include "ops/families.h"

namespace oxy::ops {
namespace {

struct Registry {
  std::unordered_map<std::string_view, const OperatorEntry*> by_name;
  std::vector<const OperatorEntry*> in_order;

  Registry() {
    for (const auto& family : kFamilies) {
      for (const OperatorEntry& entry : family()) {
        check(by_name.emplace(entry.name, &entry).second, entry.name);
        in_order.push_back(&entry);
      }
    }
  }
};

const Registry& registry() {
  static const Registry* const instance = new Registry;
  return *instance;
}

}  // namespace

const TensorMeta& ShapeContext::no_tensor(size_t i) const {
  throw Unsupported(fmt::format("{}: argument {} is not a tensor", schema_.name, i));
}

const OperatorEntry* find(std::string_view name) {
  const Registry& r = registry();
  auto found = r.by_name.find(name);
  return found == r.by_name.end() ? nullptr : found->second;
}

std::span<const OperatorEntry* const> all() {
  return registry().in_order;
}

const OperatorSchema* schema_of(const OperatorEntry& entry) {
  if (const OperatorSchema* known = find_schema(entry.name)) return known;
  return intern_schema(entry.schema, entry.is_random);
}

void intern_schemas() {
  for (const OperatorEntry* entry : all()) schema_of(*entry);
}

}  // namespace oxy::ops
