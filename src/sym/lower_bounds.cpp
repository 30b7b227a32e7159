#include "sym/lower_bounds.h"

#include <algorithm>
#include <optional>

namespace oxy::sym {

void LowerBounds::note(const Expr& e, int64_t least) {
  if (e.is_constant()) return;
  const auto operands = e.operands();
  switch (e.kind()) {
    case Kind::Variable: {
      Expr& known = symbols_.try_emplace(e.variable_id(), e).first->second;
      const Range range = known.range();
      if (range.low < least)
        known = Expr::variable(e.variable_name(), e.variable_id(),
                               {.low = least, .high = std::max(least, range.high)});
      break;
    }
    case Kind::Product: {
      if (std::ranges::any_of(operands, [](const Expr& factor) { return factor.range().low < 0; })) break;
      const std::optional<int64_t> factor = operands[0].as_constant();
      if (factor && operands.size() == 2)
        note(operands[1], (least + *factor - 1) / *factor);
      else
        for (const Expr& operand : operands) note(operand, 1);
      break;
    }
    case Kind::FloorDiv:
      if (const auto divisor = operands[1].as_constant();
          divisor && *divisor > 0 && least <= kMaxInt / *divisor)
        note(operands[0], least * *divisor);
      break;
    case Kind::Sum:
      if (const auto rest = operands.back().as_constant(); rest && operands.size() == 2 && least > *rest)
        note(operands[0], least - *rest);
      break;
    case Kind::Min:
      for (const Expr& operand : operands) note(operand, least);
      break;
    default:
      break;
  }
}

const Expr* LowerBounds::find(int64_t id) const {
  const auto found = symbols_.find(id);
  return found == symbols_.end() ? nullptr : &found->second;
}

Expr LowerBounds::applied(const Expr& e) const {
  return substitute(e, [&](int64_t id) -> std::optional<Expr> {
    const Expr* const symbol = find(id);
    return symbol ? std::optional(*symbol) : std::nullopt;
  });
}

}  // namespace oxy::sym
