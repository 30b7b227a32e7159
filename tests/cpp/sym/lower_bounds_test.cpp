#include "sym/lower_bounds.h"

#include <doctest/doctest.h>

#include <optional>

namespace oxy::sym {
namespace {

Expr size(int64_t id) {
  return Expr::variable("s", id, {0, 1 << 20});
}

int64_t least(const LowerBounds& bounds, int64_t id) {
  const Expr* const known = bounds.find(id);
  return known == nullptr ? 0 : known->range().low;
}

TEST_CASE("what follows for symbols from an expression with elements") {
  const Expr s = size(0);
  const Expr t = size(1);
  struct Case {
    Expr e;
    int64_t s, t;
  };
  const Case cases[] = {{s, 1, 0},
                        {s * t, 1, 1},
                        {s * 4, 1, 0},
                        {floordiv(s, 4), 4, 0},
                        {s - 3, 4, 0},
                        {s + 3, 0, 0},
                        {min(s, t), 1, 1},
                        {max(s, t), 0, 0},
                        {s - t, 0, 0},
                        {8 - s, 0, 0},
                        {floordiv(s, 4) * t, 4, 1}};
  for (const Case& c : cases) {
    LowerBounds bounds;
    bounds.note(c.e, 1);
    INFO(c.e.str());
    CHECK(least(bounds, 0) == c.s);
    CHECK(least(bounds, 1) == c.t);
  }
}

// All values of two symbols: those for which the expression is positive are in the ranges.
TEST_CASE("no value is left out") {
  constexpr int64_t kMost = 12;
  const Expr s = size(0);
  const Expr t = size(1);
  const Expr expressions[] = {
      s * t - 2,     min(s - 2, t),          floordiv(s * t, 3), floordiv(s - 1, 2) * t,
      max(s - 4, 0), s - min(s, 4),          s * 3 - 4,          min(floordiv(s, 2), t) - 1,
      s - t * 2 + 1, floordiv(s + t, 2) - 3, s * (t - 1),        mod(s, 4)};
  for (const Expr& e : expressions) {
    LowerBounds bounds;
    bounds.note(e, 1);
    for (int64_t x = 0; x <= kMost; ++x)
      for (int64_t y = 0; y <= kMost; ++y) {
        const Expr value =
            substitute(e, [&](int64_t id) -> std::optional<Expr> { return id == 0 ? Expr(x) : Expr(y); });
        if (value.constant() < 1) continue;
        INFO(e.str(), " of ", x, " and ", y);
        CHECK(x >= least(bounds, 0));
        CHECK(y >= least(bounds, 1));
      }
  }
}

TEST_CASE("lower bounds simplify") {
  const Expr s = size(0);
  LowerBounds bounds;
  bounds.note(s, 1);
  CHECK(bounds.applied(max(s, 1)) == s);
  CHECK(bounds.applied(size(1)) == size(1));
}

}  // namespace
}  // namespace oxy::sym
