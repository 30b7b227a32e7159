#include "sym/facts/facts.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "sym/facts/always_holds.h"
#include "sym/hints.h"
#include "sym/multiples.h"
#include "sym/random_conditions.h"

using namespace oxy;
using namespace oxy::sym;

namespace {
Expr size(const char* name, int64_t id, int64_t low = 0, int64_t high = kMaxInt) {
  return Expr::variable(name, id, {low, high});
}
}  // namespace

TEST_CASE("facts: what holds without any") {
  const Expr s = size("s", 0), n = size("n", 1, 1);
  CHECK(always_holds(less_equal(min(s, 2), s)));
  CHECK(always_holds(less_equal(min(s, max(s - 1, 0)), s)));
  CHECK(always_holds(less_equal(ceildiv(s, 2), s)));
  CHECK(always_holds(less_equal(3 * ceildiv(s, 3), s + 2)));
  CHECK(always_holds(less(mod(s, n), n)));
  CHECK(always_holds(less_equal(s, s * n)));
  CHECK(always_holds(less_equal(s * min(n, 7), s * n)));
  CHECK(always_holds(less_equal(n - 1 + (min(n, 5) - 1) * s * 3, n - 1 + 3 * (n - 1) * s)));
  CHECK_FALSE(always_holds(less_equal(n, s * n)));
  CHECK_FALSE(always_holds(less_equal(s * max(n, 7), s * n)));
  CHECK_FALSE(always_holds(less_equal(ceildiv(s, 2) + 1, s)));
  CHECK_FALSE(always_holds(less_equal(3 * ceildiv(s, 3), s + 1)));
  CHECK_FALSE(always_holds(less_equal(max(s, 2), s)));
}

TEST_CASE("facts: bounds, equalities and remainders") {
  const Expr s = size("s", 0), t = size("t", 1), u = size("u", 2);
  Facts facts;
  CHECK(facts.answer(less_equal(0, s)) == Answer::True);
  CHECK(facts.answer(equal(s, 1)) == Answer::Unknown);
  CHECK(facts.add(less_equal(2, s)));
  CHECK(facts.answer(equal(s, 1)) == Answer::False);
  CHECK(facts.add(equal(s, t)));
  CHECK(facts.simplify(t) == s);
  CHECK(facts.range(t) == Range{2, kMaxInt});
  CHECK(facts.answer(less(t, 2)) == Answer::False);
  CHECK(facts.add(less_equal(t, 40)));
  CHECK(facts.range(s) == Range{2, 40});
  CHECK(facts.add(divisible(s, 8)));
  CHECK(facts.range(s) == Range{8, 40});
  CHECK(facts.answer(divisible(t, 4)) == Answer::True);
  CHECK(facts.answer(equal(t, 12)) == Answer::False);
  CHECK(facts.answer(divisible(t + 4, 8)) == Answer::False);
  CHECK(facts.simplify(mod(t, 8)) == Expr(0));
  CHECK(facts.simplify(8 * floordiv(t, 8)) == s);
  CHECK(facts.simplify(floordiv(3 * s, 8)) == 3 * floordiv(s, 8));
  CHECK(facts.add(equal(u, 2 * s + 1)));
  CHECK(facts.simplify(u) == 2 * s + 1);
  CHECK(facts.answer(divisible(u, 2)) == Answer::False);
  CHECK(facts.answer(less_equal(u, 81)) == Answer::True);
  CHECK(facts.add(less(s, 16)));
  CHECK(facts.simplify(s) == Expr(8));
  CHECK(facts.simplify(u) == Expr(17));
  CHECK_FALSE(facts.add(equal(t, 9)));
  CHECK(facts.is_contradictory());
}

TEST_CASE("facts: a range of an equal variable holds of the other") {
  const Expr s = size("s", 0), t = size("t", 1, 3, 9);
  Facts facts;
  CHECK(facts.add(divisible(t, 3)));
  CHECK(facts.add(equal(t, s)));
  CHECK(facts.range(s) == Range{3, 9});
  CHECK(facts.answer(divisible(s, 3)) == Answer::True);
}

TEST_CASE("facts: remainders combine") {
  const Expr s = size("s", 0);
  Facts facts;
  CHECK(facts.add(equal(mod(s, 4), 3)));
  CHECK(facts.add(equal(mod(s, 6), 5)));
  CHECK(facts.answer(equal(mod(s, 12), 11)) == Answer::True);
  CHECK(facts.answer(equal(mod(s, 2), 1)) == Answer::True);
  CHECK(facts.range(s) == Range{11, kMaxInt});
  CHECK_FALSE(facts.add(divisible(s, 3)));
}

TEST_CASE("facts: symbols that are multiples") {
  const Expr s = size("s", 0), t = size("t", 1), u = size("u", 2), w = size("w", 3);
  Facts facts;
  for (const Expr& e : {s, t, w}) facts.declare(e, Availability::Early);
  facts.declare(u, Availability::Late);
  CHECK(facts.multiples().empty());
  CHECK(facts.add(equal(mod(s, 4), 0)));
  CHECK(facts.add(equal(mod(s, 6), 0)));
  CHECK(facts.add(equal(mod(t, 4), 1)));
  CHECK(facts.add(equal(mod(u, 4), 0)));
  CHECK(facts.add(equal(w, s)));
  CHECK(facts.add(less_equal(s, 100)));
  const std::vector<Multiple> multiples = facts.multiples();
  REQUIRE(multiples.size() == 1);  // t has a remainder, u comes late, and w is s
  CHECK(multiples[0].symbol == s);
  CHECK(multiples[0].factor % 4 == 0);
  const Expr quotient = quotient_variable(multiples[0]);
  CHECK(quotient.range() == Range{0, 100 / multiples[0].factor});
  CHECK(quotient == quotient_variable(multiples[0]));
  CHECK_FALSE(quotient == quotient_variable({t, multiples[0].factor}));
  Hints hints({24, std::nullopt});
  hints.add(multiples[0]);
  hints.add({t, 4});
  CHECK(hints.of(quotient.variable_id()) == 24 / multiples[0].factor);
  CHECK_FALSE(hints.of(quotient_variable({t, 4}).variable_id()));
}

TEST_CASE("facts: a remainder of which one value is left") {
  const Expr s = Expr::variable("s", 0, {0, kMaxInt});
  const Expr rest = s - min(s, floordiv(s, 2) + 1);
  for (const Condition& is_odd : {less_equal(1, mod(s, 2)), not_equal(mod(s, 2), 0), equal(mod(s, 2), 1)}) {
    Facts facts;
    facts.declare(s, Availability::Early, true);
    CHECK(facts.add(is_odd));
    CHECK(facts.simplify(rest) == floordiv(s, 2));
    CHECK(facts.add(equal(rest, 1)));
    CHECK(facts.simplify(s) == Expr(3));
  }
}

TEST_CASE("facts: a minimum that is its least value") {
  // With the ranges as they are then, the equation is written as an inequality.
  const Expr a = Expr::variable("a", 0, {0, 100}), b = Expr::variable("b", 1, {0, 100});
  Facts facts;
  REQUIRE(facts.add(equal(min(a, b), 1)));
  REQUIRE(facts.add(less_equal(1, a)));
  REQUIRE(facts.add(less_equal(1, b)));
  CHECK(facts.simplify(min(a, b)) == Expr(1));
  CHECK(facts.simplify(max(min(a, b), 1) * a) == facts.simplify(a));
}

TEST_CASE("facts: a quotient that is a number") {
  const Expr s = size("s", 0), t = size("t", 1);
  Facts facts;
  REQUIRE(facts.add(equal(s, floordiv(s, 63) * 63)));
  REQUIRE(facts.add(equal(floordiv(s, 63), 1)));
  CHECK(facts.simplify(s) == Expr(63));
  REQUIRE(facts.add(equal(floordiv(t * 2 + 1, 4), 3)));
  CHECK(facts.range(t) == Range{6, 7});
  CHECK_FALSE(facts.add(equal(floordiv(t, 4), 3)));
}

TEST_CASE("facts: inequalities between variables") {
  const Expr s = size("s", 0), t = size("t", 1), u = size("u", 2);
  Facts facts;
  CHECK(facts.add(less(s, t)));
  CHECK(facts.add(less_equal(t, u)));
  CHECK(facts.answer(less(s, u)) == Answer::True);
  CHECK(facts.answer(equal(s, u)) == Answer::False);
  CHECK(facts.answer(less_equal(s + 2, u)) == Answer::Unknown);
  CHECK(facts.simplify(min(s, u)) == s);
  CHECK(facts.simplify(max(s + 1, t)) == t);
  CHECK(facts.simplify(mod(s, t)) == s);
  CHECK(facts.simplify(floordiv(s, u)) == Expr(0));
  CHECK(facts.range(u).low == 1);
  CHECK(facts.answer(less_equal(s * t, s * u)) == Answer::True);
}

TEST_CASE("facts: products that are zero") {
  const Expr s = size("s", 0, 1), t = size("t", 1), u = size("u", 2);
  Facts facts;
  CHECK(facts.answer(equal(s * t, 0)) == Answer::Unknown);
  CHECK(facts.add(not_equal(s * t * u, 0)));
  CHECK(facts.range(t).low == 1);
  CHECK(facts.answer(equal(u, 0)) == Answer::False);
  CHECK(facts.answer(less_equal(t, s * t)) == Answer::True);
}

TEST_CASE("facts: products that are at least a number") {
  const Expr s = size("s", 0), t = size("t", 1);
  Facts facts;
  CHECK(facts.add(less_equal(1, s * t)));
  CHECK(facts.range(t).low == 1);
  CHECK(facts.add(less_equal(9, s * t)));
  CHECK(facts.answer(less_equal(9, t * s)) == Answer::True);
  CHECK(facts.answer(less_equal(10, t * s)) == Answer::Unknown);
  CHECK(facts.answer(less_equal(9, t * s + t)) == Answer::True);
}

TEST_CASE("facts: a maximum that is one of its operands") {
  const Expr s = size("s", 0), t = size("t", 1);
  Facts facts;
  CHECK(facts.add(equal(max(s, 3), s)));
  CHECK(facts.range(s).low == 3);
  CHECK(facts.add(not_equal(t, min(t, 7))));
  CHECK(facts.range(t).low == 8);
  CHECK(facts.add(less_equal(max(s, t), 20)));
  CHECK(facts.range(s).high == 20);
  CHECK(facts.range(t).high == 20);
  CHECK(facts.add(less_equal(5, max(s, 2))));
  CHECK(facts.range(s).low == 5);
}

TEST_CASE("facts: one of several") {
  const Expr s = size("s", 0), t = size("t", 1);
  const Condition either = Condition::any({equal(s, 1), less(t, 9)});
  Facts facts;
  CHECK(facts.add(either));
  CHECK(facts.answer(either) == Answer::True);
  CHECK(facts.answer(!either) == Answer::False);
  CHECK(facts.answer(equal(s, 1)) == Answer::Unknown);
  CHECK(facts.add(less(2, s)));
  CHECK(facts.answer(less(t, 9)) == Answer::True);
}

TEST_CASE("facts: sizes that are large by assumption") {
  const Expr s = size("s", 0), n = size("n", 1);
  Facts facts;
  facts.declare(s, Availability::Early, true);
  facts.declare(n);
  CHECK(facts.answer(equal(s, 1), Assume::LargeSizes) == Answer::False);
  CHECK(facts.answer(equal(2 * s, 0), Assume::LargeSizes) == Answer::False);
  CHECK(facts.answer(equal(n, 1), Assume::LargeSizes) == Answer::Unknown);
  CHECK(facts.answer(equal(s, 2), Assume::LargeSizes) == Answer::Unknown);
  CHECK(facts.add(less_equal(s, 1)));
  CHECK(facts.answer(equal(s, 1), Assume::LargeSizes) == Answer::Unknown);
}

TEST_CASE("facts: what is known early is not written in terms of what is known late") {
  const Expr s = size("s", 5), u = size("u", 1);
  Facts facts;
  facts.declare(s, Availability::Early);
  facts.declare(u, Availability::Late);
  CHECK(facts.add(equal(s, u)));
  CHECK(facts.simplify(u) == s);
  Facts products;
  products.declare(s, Availability::Early);
  products.declare(u, Availability::Late);
  CHECK(products.add(equal(s, u * u)));
  CHECK(products.simplify(s) == s);
  CHECK(products.answer(equal(s, u * u)) == Answer::True);
}

TEST_CASE("facts: numbers at the ends of what is computed with") {
  const Expr s = size("s", 0), t = size("t", 1);
  Facts facts;
  CHECK(facts.add(less_equal(kMaxInt - 1, s)));
  CHECK(facts.add(less_equal(s * kMaxInt, t)));
  CHECK(facts.answer(equal(s, 3)) == Answer::False);
  CHECK(facts.answer(less(s * s * kMaxInt, t * kMaxInt)) == Answer::Unknown);
  CHECK(facts.simplify(s + kMaxInt) == s + kMaxInt);
  CHECK(facts.add(less_equal(kMaxInt, s)));
  CHECK_FALSE(facts.simplify(s).is_constant());
}

// Facts that a random assignment satisfies, and questions. For every small assignment that satisfies the
// facts, a certain answer must be right, a simplified expression must have the same value, and a range must
// hold it.
TEST_CASE("facts: answers are right for every assignment") {
  const uint64_t seed = 20260;
  MESSAGE("seed ", seed);
  testing::RandomConditions random(seed);
  size_t questions = 0, certain = 0, could_be = 0;
  for (int round = 0; round < testing::rounds(4000); ++round) {
    random.draw_variables();
    const std::vector<testing::Assignment> all = random.assignments();
    const testing::Assignment& at_hand =
        all[static_cast<size_t>(random.pick(static_cast<int64_t>(all.size())))];
    Facts facts;
    std::vector<Condition> conditions;
    for (int64_t n = random.pick(5); n > 0; --n) {
      Condition condition = random.condition();
      if (!evaluate(condition, testing::value_in(at_hand))) condition = !condition;
      conditions.push_back(condition);
      REQUIRE(facts.add(condition));
    }
    std::vector<const testing::Assignment*> possible;
    for (const testing::Assignment& a : all)
      if (std::ranges::all_of(conditions,
                              [&](const Condition& c) { return evaluate(c, testing::value_in(a)); }))
        possible.push_back(&a);
    REQUIRE_FALSE(possible.empty());
    std::string context;
    for (const Condition& c : conditions) context += text(c) + "; ";
    CAPTURE(round);
    CAPTURE(context);
    for (const Condition& c : conditions) CHECK_MESSAGE(facts.answer(c) != Answer::False, text(c));
    for (int n = 0; n < 6; ++n) {
      const Condition question = random.condition();
      const Answer answer = facts.answer(question);
      size_t holds = 0;
      for (const auto* a : possible) holds += evaluate(question, testing::value_in(*a));
      ++questions;
      certain += answer != Answer::Unknown;
      could_be += holds == 0 || holds == possible.size();
      CAPTURE(text(question));
      if (answer == Answer::True) CHECK(holds == possible.size());
      if (answer == Answer::False) CHECK(holds == 0);
      const Expr e = random.expression(3);
      const Expr simple = facts.simplify(e);
      CAPTURE(e.str());
      CAPTURE(simple.str());
      const Range range = simple.range();
      for (const auto* a : possible) {
        const int64_t value = evaluate(e, testing::value_in(*a));
        REQUIRE(evaluate(simple, testing::value_in(*a)) == value);
        REQUIRE(range.low <= value);
        REQUIRE(value <= range.high);
      }
    }
  }
  MESSAGE("questions ", questions, ", answered ", certain, ", constant over the small assignments ",
          could_be);
  CHECK(certain * 2 > could_be);  // it does answer
}
