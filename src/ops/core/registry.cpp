#include "ops/core/registry.h"

#include <fmt/format.h>

#include <deque>
#include <unordered_map>

#include "base/error.h"
#include "ops/core/elements.h"
#include "ops/core/families.h"

namespace oxy::ops {
namespace {

struct Registry {
  std::deque<OperatorEntry> entries;  // never moves an element
  std::unordered_map<std::string_view, const OperatorEntry*> by_name;
  std::vector<const OperatorEntry*> in_order;

  Registry() {
    for (const FamilyOfOperators& family : kFamilies) {
      for (const OperatorEntry& stated : family.operators()) {
        OperatorEntry& entry = entries.emplace_back(stated);
        entry.traits.is_cheap = (family.is_cheap || entry.traits.is_cheap) && entry.lower && !entry.is_random;
        if (entry.traits.host_operands == HostOperands::None)
          entry.traits.host_operands = family.host_operands;
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

bool ShapeContext::equal(const Expr& a, const Expr& b) const {
  if (sym::known_equal(a, b)) return true;
  if (questions_ == nullptr) return false;
  // Whatever is compared with zero is a size or a number of elements.
  return b == Expr(0) ? questions_->is_empty(a) : questions_->decide(sym::equal(a, b));
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

sym::Expr SizeQuestions::computed_size(const sym::Expr&) const {
  throw Unsupported("the shape of a result depends on data");
}

bool ShapeContext::require(const sym::Condition& condition) const {
  if (const auto known = condition.constant()) return *known;
  return questions_ != nullptr && questions_->require(condition);
}

Expr ShapeContext::computed_size(const Expr& at_most) const {
  if (questions_ == nullptr) throw Unsupported(schema_.name + ": the shape of the result depends on data");
  return questions_->computed_size(at_most);
}

const TensorMeta& ShapeContext::no_tensor(size_t i) const {
  throw Unsupported(fmt::format("{}: argument {} is not a tensor", schema_.name, i));
}

const OperatorEntry& entry_of(const OperatorSchema& op) {
  if (const OperatorEntry* known = op.entry.get()) return *known;
  static const OperatorEntry without_rules;
  const OperatorEntry* found = find(op.name);
  if (found == nullptr) found = &without_rules;
  op.entry.set(found);
  return *found;
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

Raises raises_on_data(const OperatorSchema& op) {
  if (const OperatorEntry& entry = entry_of(op); !entry.name.empty()) return entry.raises;
  // Singular matrices, and such as are not positive definite.
  const std::string_view name = op.name;
  const bool decomposes_matrices = name.starts_with("aten::linalg_") || name.starts_with("aten::cholesky");
  return decomposes_matrices ? Raises::OnAnyElements : Raises::Never;
}

bool raises_on_data(const graph::Graph& graph, const graph::Node& node) {
  const Raises raises = raises_on_data(*node.op);
  if (raises != Raises::OnIntegers) return raises == Raises::OnAnyElements;
  bool has_integers = false;
  graph::for_each_input(node, [&](graph::ValueId id) { has_integers |= is_integral(graph.meta(id).dtype); });
  return has_integers && !indices_lie_within(graph, node);
}

bool may_raise(const graph::Graph& graph, const graph::Node& node) {
  if (node.op->is_view() && traits_of(*node.op).addresses_storage()) {
    const graph::ValueId whole = std::get<graph::ValueRef>(node.args.at(0)).id;
    return !lies_between(graph.meta(node.outputs.at(0)), graph.meta(whole));
  }
  return raises_on_data(graph, node);
}

void intern_schemas() {
  for (const OperatorEntry* entry : all()) schema_of(*entry);
}

}  // namespace oxy::ops
