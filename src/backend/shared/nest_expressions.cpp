#include "backend/shared/nest_expressions.h"

#include <fmt/format.h>

#include <algorithm>

#include "loop/variables.h"

namespace oxy::backend {

namespace {

constexpr int64_t kNestVariables = int64_t{1} << 41;
constexpr int kExtentBits = 32;
constexpr int64_t kExtentMask = (int64_t{1} << kExtentBits) - 1;

Expr without(const Expr& e, size_t depth, bool outer) {
  if (e.is_constant()) return e;
  return sym::substitute(e, [&](int64_t id) -> std::optional<Expr> {
    if (!is_nest_variable(id)) return std::nullopt;
    bool is_bound = is_bound_variable(id);
    bool is_outer = !is_bound && variable_position(Expr::variable("", id, {})) < static_cast<int64_t>(depth);
    return is_outer == outer ? std::optional<Expr>(Expr(0)) : std::nullopt;
  });
}

}  // namespace

Expr nest_variable(int64_t position, const Expr& extent) {
  auto constant = extent.as_constant();
  bool small = constant && *constant < kExtentMask / 2;
  int64_t key = small ? *constant
                      : static_cast<int64_t>(extent.hash() & static_cast<size_t>(kExtentMask / 2)) |
                            (kExtentMask / 2 + 1);
  int64_t high = extent.range().high;
  if (high < sym::kMaxInt) high = std::max<int64_t>(high - 1, 0);
  return Expr::variable(fmt::format("v{}", position), kNestVariables + (position << kExtentBits) + key,
                        {0, high});
}

int64_t variable_position(const Expr& v) {
  return (v.variable_id() - kNestVariables) >> kExtentBits;
}

bool is_bound_variable(int64_t id) {
  return id >= loop::kBoundVariables && id < loop::kViewVariables;
}

bool has_bound_variable(const Expr& offset) {
  return std::ranges::any_of(sym::variables(offset),
                             [](const Expr& v) { return is_bound_variable(v.variable_id()); });
}

bool is_nest_variable(int64_t id) {
  return id >= loop::kLoopVariables;
}

std::optional<Expr> stride_of(const Expr& e, const Expr& v) {
  if (e.is_constant()) return Expr(0);
  auto linear = sym::linear_in(e, v.variable_id());
  if (!linear) return std::nullopt;
  return std::move(linear->first);
}

Expr without_outer(const Expr& e, size_t depth) {
  return without(e, depth, true);
}

Expr without_inner(const Expr& e, size_t depth) {
  return without(e, depth, false);
}

}  // namespace oxy::backend
