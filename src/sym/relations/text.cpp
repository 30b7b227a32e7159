// Conditions as text.
#include <fmt/format.h>

#include "sym/relations/condition.h"

namespace oxy::sym {

std::string text(const Expr& expression, const Names& name) {
  if (!name) return expression.str();
  std::vector<std::pair<int64_t, Expr>> renamed;
  for (const Expr& v : variables(expression))
    renamed.emplace_back(v.variable_id(), Expr::variable(name(v.variable_id()), v.variable_id(), {}));
  return substitute(expression,
                    [&](int64_t id) -> std::optional<Expr> {
                      for (const auto& [known, variable] : renamed)
                        if (known == id) return variable;
                      return std::nullopt;
                    })
      .str();
}

namespace {

const char* sign(Comparison comparison) {
  switch (comparison) {
    case Comparison::Equal:
      return "==";
    case Comparison::NotEqual:
      return "!=";
    case Comparison::Less:
      return "<";
    case Comparison::LessEqual:
      return "<=";
  }
  return "?";
}

// `low <= value` and `value <= high` as the text of both; nothing if the two are not such a pair.
std::optional<std::string> interval_text(const Condition& a, const Condition& b, const Names& name) {
  if (a.kind() != ConditionKind::Relation || b.kind() != ConditionKind::Relation) return std::nullopt;
  const Comparands low = comparands(a.relation());
  const Comparands high = comparands(b.relation());
  if (low.comparison != Comparison::LessEqual || high.comparison != Comparison::LessEqual)
    return std::nullopt;
  if (!low.left.is_constant() || !high.right.is_constant() || !(low.right == high.left)) return std::nullopt;
  return fmt::format("{} <= {} <= {}", low.left.str(), text(low.right, name), high.right.str());
}

std::string joined(const Condition& condition, const Names& name) {
  const bool is_all = condition.kind() == ConditionKind::All;
  const std::span<const Condition> parts = condition.parts();
  std::string out;
  for (size_t i = 0; i < parts.size(); ++i) {
    std::optional<std::string> part;
    if (is_all && i + 1 < parts.size()) part = interval_text(parts[i], parts[i + 1], name);
    if (!out.empty()) out += is_all ? " and " : " or ";
    if (part) {
      out += *part;
      ++i;
    } else {
      const bool is_inner = parts[i].kind() != ConditionKind::Relation;
      out += is_inner ? fmt::format("({})", text(parts[i], name)) : text(parts[i], name);
    }
  }
  return out;
}

}  // namespace

std::string text(const Condition& condition, const Names& name) {
  if (const std::optional<bool> value = condition.constant()) return *value ? "True" : "False";
  if (condition.kind() != ConditionKind::Relation) return joined(condition, name);
  const Comparands sides = comparands(condition.relation());
  return fmt::format("{} {} {}", text(sides.left, name), sign(sides.comparison), text(sides.right, name));
}

}  // namespace oxy::sym
