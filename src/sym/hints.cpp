#include "sym/hints.h"

#include <algorithm>

namespace oxy::sym {

namespace {

constexpr int64_t kTypicalSize = 64;

thread_local const Hints* current = nullptr;

}  // namespace

std::optional<int64_t> Hints::of(int64_t variable) const {
  if (variable >= 0 && static_cast<size_t>(variable) < values_.size())
    return values_[static_cast<size_t>(variable)];
  const auto quotient = std::ranges::find(of_quotients_, variable, &std::pair<int64_t, int64_t>::first);
  return quotient == of_quotients_.end() ? std::nullopt : std::optional(quotient->second);
}

void Hints::add(const Multiple& multiple) {
  if (const auto value = of(multiple.symbol.variable_id()))
    of_quotients_.emplace_back(quotient_variable(multiple).variable_id(), *value / multiple.factor);
}

HintScope::HintScope(const Hints& hints) : outer_(std::exchange(current, &hints)) {}

HintScope::~HintScope() {
  current = outer_;
}

std::optional<int64_t> at_hand(const Expr& e) {
  const std::vector<Expr> all = variables(e);
  const auto has_hint = [](const Expr& v) { return current != nullptr && current->of(v.variable_id()); };
  return std::ranges::all_of(all, has_hint) ? std::optional(estimate(e)) : std::nullopt;
}

int64_t estimate(const Expr& e) {
  if (const auto constant = e.as_constant()) return *constant;
  const std::vector<Expr> all = variables(e);
  return evaluate(e, [&](int64_t id) -> std::optional<int64_t> {
    if (const auto hint = current ? current->of(id) : std::nullopt) return hint;
    const auto variable = std::ranges::find(all, id, [](const Expr& v) { return v.variable_id(); });
    if (variable == all.end()) return kTypicalSize;
    const Range range = variable->range();
    return std::clamp(kTypicalSize, range.low, std::max(range.low, range.high));
  });
}

}  // namespace oxy::sym
