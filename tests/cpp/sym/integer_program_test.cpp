#include "sym/program/integer_program.h"

#include <doctest/doctest.h>

#include <limits>

#include "sym/random_conditions.h"

using namespace oxy;
using namespace oxy::sym;

namespace {

RunOutcome run(const IntegerProgram& program, const std::vector<int64_t>& values,
               std::vector<int64_t>& work) {
  work.assign(program.slots(), -1);
  return program.run(values, work);
}

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();

}  // namespace

TEST_CASE("integer program: results and the condition that fails") {
  const Expr s = Expr::variable("s", 3, {}), t = Expr::variable("t", 7, {});
  const std::vector<int64_t> inputs{7, 3};
  const std::vector<Condition> conditions{less(s, t), Condition::any({equal(s, 2), divisible(t, 8)}), true};
  const std::vector<Expr> results{s * t - 3, floordiv(t, s), 5};
  const IntegerProgram program(inputs, conditions, results);
  std::vector<int64_t> work;
  CHECK(run(program, {8, 3}, work) == RunOutcome{});
  CHECK(program.result(work, 0) == 21);
  CHECK(program.result(work, 1) == 2);
  CHECK(program.result(work, 2) == 5);
  CHECK(run(program, {3, 8}, work) == RunOutcome{RunStatus::Fails, 0});
  CHECK(run(program, {9, 3}, work) == RunOutcome{RunStatus::Fails, 1});
  CHECK(run(program, {9, 2}, work) == RunOutcome{});
  CHECK(run(program, {8, 0}, work) == RunOutcome{RunStatus::ZeroDivision, -1});
  const std::vector<Condition> never{false};
  CHECK(run(IntegerProgram(inputs, never), {1, 1}, work) == RunOutcome{RunStatus::Fails, 0});
  CHECK(run(IntegerProgram(), {}, work) == RunOutcome{});
  CHECK_THROWS_AS(IntegerProgram(std::vector<int64_t>{3}, conditions), InternalError);
}

TEST_CASE("integer program: numbers that do not fit stop it") {
  const Expr a = Expr::variable("a", 0, {}), b = Expr::variable("b", 1, {});
  const auto status = [&](const Expr& e, int64_t x, int64_t y) {
    std::vector<int64_t> work;
    return run(IntegerProgram(std::vector<int64_t>{0, 1}, {}, std::vector<Expr>{e}), {x, y}, work).status;
  };
  CHECK(status(a + b, kMost, 1) == RunStatus::Overflow);
  CHECK(status(a + b, kLeast, -1) == RunStatus::Overflow);
  CHECK(status(a - b, 0, kLeast) == RunStatus::Overflow);
  CHECK(status(a * b, kMost, 2) == RunStatus::Overflow);
  CHECK(status(-5 * a - b, kLeast, 0) == RunStatus::Overflow);
  CHECK(status(floordiv(a, b), kLeast, -1) == RunStatus::Overflow);
  CHECK(status(mod(a, b), kLeast, -1) == RunStatus::Holds);
  CHECK(status(mod(a, b), kLeast, 3) == RunStatus::Holds);
  CHECK(status(floordiv(a, b), kLeast, 3) == RunStatus::Holds);
  CHECK(status(mod(a, b), 1, 0) == RunStatus::ZeroDivision);
  CHECK(status(min(a, b) + max(a, b), kMost, kLeast) == RunStatus::Holds);
}

TEST_CASE("integer program: a part of a condition is false where it divides by zero") {
  const Expr a = Expr::variable("a", 0, {}), b = Expr::variable("b", 1, {});
  const Condition divides = less(0, mod(-2, a)), other = equal(b, 1);
  const std::vector<Condition> conditions{Condition::any({divides, other}), Condition::any({other, divides}),
                                          Condition::any({equal(mod(b, a) + mod(-2, a), 0), other})};
  for (const Condition& condition : conditions) {
    const IntegerProgram program(std::vector<int64_t>{0, 1}, std::vector<Condition>{condition});
    std::vector<int64_t> work;
    CHECK(run(program, {0, 1}, work) == RunOutcome{});
    CHECK(run(program, {0, 2}, work) == RunOutcome{RunStatus::Fails, 0});
  }
  std::vector<int64_t> work;
  const IntegerProgram both(std::vector<int64_t>{0, 1},
                            std::vector<Condition>{conditions[0], equal(mod(-2, a), 1)});
  CHECK(run(both, {3, 1}, work) == RunOutcome{});
  CHECK(run(both, {0, 1}, work) == RunOutcome{RunStatus::ZeroDivision, 1});
}

TEST_CASE("integer program: equals the evaluation of expressions") {
  const uint64_t seed = 411;
  MESSAGE("seed ", seed);
  testing::RandomConditions random(seed);
  std::vector<int64_t> work;
  size_t runs = 0;
  for (int round = 0; round < testing::rounds(3000); ++round) {
    random.draw_variables();
    std::vector<int64_t> inputs;
    for (const Expr& v : random.variables()) inputs.push_back(v.variable_id());
    std::vector<Condition> conditions;
    std::vector<Expr> results;
    for (int64_t n = random.pick(3); n > 0; --n) conditions.push_back(random.condition(2));
    for (int64_t n = 1 + random.pick(3); n > 0; --n) results.push_back(random.expression(4));
    const IntegerProgram program(inputs, conditions, results);
    const std::vector<testing::Assignment> all = random.assignments();
    for (int n = 0; n < 12; ++n) {
      const testing::Assignment& a = all[static_cast<size_t>(random.pick(static_cast<int64_t>(all.size())))];
      RunOutcome expected;
      for (size_t i = 0; i < conditions.size() && expected.status == RunStatus::Holds; ++i)
        if (!evaluate(conditions[i], testing::value_in(a)))
          expected = {RunStatus::Fails, static_cast<int32_t>(i)};
      REQUIRE(run(program, a, work) == expected);
      ++runs;
      if (expected.status != RunStatus::Holds) continue;
      for (size_t i = 0; i < results.size(); ++i)
        REQUIRE(program.result(work, i) == evaluate(results[i], testing::value_in(a)));
    }
  }
  MESSAGE(runs, " runs");
}

TEST_CASE("integer program: a relation takes two instructions") {
  std::vector<int64_t> inputs;
  std::vector<int64_t> values;
  std::vector<Condition> conditions;
  for (int64_t i = 0; i < 10; ++i) {
    const Expr s = Expr::variable("s" + std::to_string(i), i, {0, kMaxInt});
    inputs.push_back(i);
    values.push_back(64);
    conditions.push_back(Condition::all({less_equal(2, s), less_equal(s, 512)}));
    conditions.push_back(divisible(s, 8));
    conditions.push_back(equal(s, Expr::variable("s0", 0, {0, kMaxInt}) * 2 - 64 + 0 * s));
  }
  const IntegerProgram program(inputs, conditions);
  std::vector<int64_t> work(program.slots());
  CHECK(program.run(values, work).status == RunStatus::Holds);
  CHECK(program.instructions() <= 2 * conditions.size());
}

TEST_CASE("integer program: a linear relation takes one instruction, and numbers of any size") {
  const Expr a = Expr::variable("a", 0, {kMinInt, kMaxInt}), b = Expr::variable("b", 1, {kMinInt, kMaxInt});
  const std::vector<int64_t> inputs = {0, 1};
  const std::vector<Condition> conditions = {less_equal(a + 2 * b, 100)};
  const IntegerProgram program(inputs, conditions);
  CHECK(program.instructions() == 1);
  std::vector<int64_t> work(program.slots());
  const auto status = [&](int64_t x, int64_t y) { return program.run(std::vector{x, y}, work).status; };
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
  CHECK(status(98, 1) == RunStatus::Holds);
  CHECK(status(99, 1) == RunStatus::Fails);
  CHECK(status(kMost, kMost) == RunStatus::Fails);
  CHECK(status(kLeast, kLeast) == RunStatus::Holds);
  CHECK(status(kLeast, kMost) == RunStatus::Fails);
  CHECK(status(kMost, kLeast) == RunStatus::Holds);

  // Neither a product nor a large multiple is linear in this sense.
  const std::vector<Condition> others = {less_equal(a * b + a, 100), less_equal(a * (int64_t{1} << 40), b)};
  const IntegerProgram computed(inputs, others);
  CHECK(computed.instructions() > 2);
}
