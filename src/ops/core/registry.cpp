#include "ops/core/registry.h"

#include <fmt/format.h>

#include <unordered_map>
#include <unordered_set>

#include "base/error.h"
#include "ops/core/families.h"

namespace oxy::ops {
namespace {

struct Registry {
  std::unordered_map<std::string_view, const OperatorEntry*> by_name;
  std::vector<const OperatorEntry*> in_order;
  std::unordered_set<std::string_view> cheap;

  Registry() {
    for (const auto& family : kFamilies) {
      for (const OperatorEntry& entry : family()) {
        check(by_name.emplace(entry.name, &entry).second, entry.name);
        in_order.push_back(&entry);
      }
    }
    for (const auto& family : {pointwise_operators, comparison_operators, creation_operators, view_operators})
      for (const OperatorEntry& entry : family())
        if (entry.lower && !entry.is_random) cheap.insert(entry.name);
  }
};

const Registry& registry() {
  static const Registry* const instance = new Registry;
  return *instance;
}

}  // namespace

bool ShapeContext::equal(const Expr& a, const Expr& b) const {
  if (sym::known_equal(a, b)) return true;
  return questions_ != nullptr && questions_->decide(sym::equal(a, b));
}

bool ShapeContext::less(const Expr& a, const Expr& b) const {
  if (sym::known_less(a, b)) return true;
  return questions_ != nullptr && questions_->decide(sym::less(a, b));
}

bool ShapeContext::less_equal(const Expr& a, const Expr& b) const {
  if (sym::known_less_equal(a, b)) return true;
  return questions_ != nullptr && questions_->decide(sym::less_equal(a, b));
}

bool ShapeContext::divisible(const Expr& a, const Expr& b) const {
  if (sym::known_divisible(a, b)) return true;
  return questions_ != nullptr && !(b == Expr(0)) && questions_->decide(sym::divisible(a, b));
}

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

bool is_cheap(const OperatorSchema& op) {
  return !op.is_mutating() && !op.is_random && registry().cheap.contains(op.name);
}

Raises raises_on_data(const OperatorSchema& op) {
  if (const OperatorEntry* entry = find(op.name)) return entry->raises;
  // Singular matrices, and such as are not positive definite.
  const std::string_view name = op.name;
  const bool decomposes_matrices = name.starts_with("aten::linalg_") || name.starts_with("aten::cholesky");
  return decomposes_matrices ? Raises::OnAnyElements : Raises::Never;
}

void intern_schemas() {
  for (const OperatorEntry* entry : all()) schema_of(*entry);
}

}  // namespace oxy::ops
