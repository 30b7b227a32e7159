#include <doctest/doctest.h>

#include "base/error.h"
#include "sym/relations/condition.h"

using namespace oxy;
using namespace oxy::sym;

namespace {
const Expr s = Expr::variable("s", 0, {0, kMaxInt});
const Expr t = Expr::variable("t", 1, {0, kMaxInt});
}  // namespace

TEST_CASE("relations: one canonical form") {
  CHECK(equal(s, t) == equal(t, s));
  CHECK(equal(2 * s + 4, 2 * t) == equal(t, s + 2));
  CHECK(less(s, t) == less_equal(s + 1, t));
  CHECK(less_equal(2 * s, 7) == less_equal(s, 3));
  CHECK(less_equal(8, 3 * s) == less_equal(3, s));
  CHECK(equal(2 * s, 7) == Condition(false));
  CHECK(not_equal(4 * s + 2 * t, 1) == Condition(true));
  CHECK(less(s, 0) == Condition(false));
  CHECK(less_equal(0, s + t) == Condition(true));
  CHECK_FALSE(equal(s, t).constant().has_value());
}

TEST_CASE("relations: minima and maxima are ordered by how they are made") {
  const Expr from = min(s, 20), to = min(max(t, from), 20);  // x[s:t] of 20 elements
  CHECK(less(to, from) == Condition(false));
  CHECK(less_equal(from, to) == Condition(true));
  CHECK(less_equal(min(s, t), max(s, t)) == Condition(true));
  CHECK(less_equal(min(s, t), s) == Condition(true));
  CHECK(less(max(s, t), t) == Condition(false));
  CHECK_FALSE(less(min(s, t), s).constant().has_value());
  CHECK_FALSE(less_equal(max(s, t), t).constant().has_value());
  // Of two slices together: each end is matched with its own beginning.
  const Expr u = Expr::variable("u", 2, {0, kMaxInt});
  const Expr second = min(t, 20), end = min(max(u, second), 20);
  CHECK(less(to + end, from + second) == Condition(false));
  CHECK(less_equal(0, to - from + end - second + s) == Condition(true));
  CHECK_FALSE(less(to, from + second).constant().has_value());
}

TEST_CASE("relations: a quotient that is compared with a number is compared without dividing") {
  CHECK(less_equal(1, floordiv(s + 1, 2)) == less_equal(1, s));
  CHECK(less_equal(2, floordiv(floordiv(s, 4), 2)) == less_equal(16, s));
  CHECK(less_equal(3, 3 * floordiv(s, 8)) == less_equal(8, s));
  CHECK(less(floordiv(s, 8), 2) == less(s, 16));
  CHECK(!less_equal(1, floordiv(s + t, 8)) == less_equal(s + t, 7));
  CHECK(text(less_equal(1, floordiv(s, t))) == "1 <= s // t");
  for (int64_t value = -20; value <= 20; ++value)
    for (const int64_t bound : {-2, -1, 0, 1, 2}) {
      const Expr x = Expr::variable("x", 2, {-100, 100});
      const auto at = [&](int64_t) { return std::optional(value); };
      const Expr quotient = floordiv(x + 1, 3);
      CHECK(evaluate(less_equal(bound, quotient), at) == (bound <= evaluate(quotient, at)));
      CHECK(evaluate(less_equal(quotient, bound), at) == (evaluate(quotient, at) <= bound));
    }
}

TEST_CASE("conditions: negation, and, or") {
  const Condition a = less(s, t), b = equal(s, 3), c = divisible(t, 8);
  CHECK(!a == less_equal(t, s));
  CHECK(!!Condition::all({a, b}) == Condition::all({a, b}));
  CHECK(!Condition::all({a, b}) == Condition::any({!a, !b}));
  CHECK(Condition::all({a, true}) == a);
  CHECK(Condition::all({a, false}) == Condition(false));
  CHECK(Condition::any({a, true}) == Condition(true));
  CHECK(Condition::any({}) == Condition(false));
  CHECK(Condition::all({a, Condition::all({b, a, c})}) == Condition::all({a, b, c}));
  CHECK(variables(Condition::any({c, b})).size() == 2);
  CHECK_THROWS_AS(Condition::any({a, b}).relation(), InternalError);
}

TEST_CASE("conditions: as a person writes them") {
  CHECK(text(equal(s, t)) == "s == t");
  CHECK(text(equal(t, s)) == "s == t");
  CHECK(text(equal(s, 5)) == "s == 5");
  CHECK(text(not_equal(s, t + 2)) == "s != t + 2");
  CHECK(text(equal(s + 2, t)) == "s + 2 == t");
  CHECK(text(less(s, t)) == "s < t");
  CHECK(text(less_equal(s, t)) == "s <= t");
  CHECK(text(less_equal(2, s)) == "2 <= s");
  CHECK(text(less(s, 8)) == "s <= 7");
  CHECK(text(less_equal(s + 3, t)) == "s + 3 <= t");
  CHECK(text(less_equal(s, t + 3)) == "s <= t + 3");
  CHECK(text(less_equal(s + t, 9)) == "s + t <= 9");
  CHECK(text(divisible(s, 8)) == "s % 8 == 0");
  CHECK(text(not_equal(mod(s, 8), 3)) == "s % 8 != 3");
  CHECK(text(Condition::all({less_equal(2, s), less_equal(s, 512)})) == "2 <= s <= 512");
  CHECK(text(Condition::any({equal(s, 1), Condition::all({equal(t, 2), less(s, t)})})) ==
        "s == 1 or (t == 2 and s < t)");
  CHECK(text(Condition(true)) == "True");
  CHECK(text(equal(2 * s, t * t), [](int64_t id) { return id == 0 ? "x.size(0)" : "y.size(1)"; }) ==
        "2*x.size(0) == y.size(1)*y.size(1)");
}
