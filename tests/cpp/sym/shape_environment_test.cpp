#include "sym/environment/shape_environment.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "sym/environment/guard_program.h"
#include "sym/random_conditions.h"

using namespace oxy;
using namespace oxy::sym;

namespace {

Locate line(const char* text) {
  return [text] { return std::string(text); };
}

Locate nowhere() {
  return [] {
    FAIL("no line is needed");
    return std::string();
  };
}

Origin origin(const char* name) {
  return {.name = name};
}

std::vector<std::string> texts(const ShapeEnvironment& environment) {
  std::vector<std::string> list;
  for (const Demand& guard : environment.guards()) list.push_back(environment.text(guard.condition));
  return list;
}

using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("shape environment: questions are answered by the values at hand, and guarded") {
  ShapeEnvironment e;
  const Expr s = e.admit(SymbolKind::Size, origin("x.size(0)"), 8);
  CHECK(e.answer(equal(s, 1)) == Answer::Unknown);
  CHECK(e.decide(less_equal(0, s), nowhere()));
  CHECK(e.guards().empty());
  CHECK_FALSE(e.decide(equal(s, 1), line("f.py:3")));
  CHECK_FALSE(e.decide(equal(1, s), nowhere()));
  CHECK(e.decide(divisible(s, 4), line("f.py:4")));
  CHECK(e.decide(divisible(s, 8), line("f.py:5")));
  CHECK(e.decide(divisible(3 * s, 8), nowhere()));
  CHECK_FALSE(e.decide(less(512, s), line("f.py:6")));
  CHECK_FALSE(e.decide(equal(s, 0), line("f.py:7")));
  CHECK(texts(e) == Texts{"x.size(0) % 8 == 0", "1 <= x.size(0) <= 512"});
  CHECK(e.guards()[0].asked_at == Texts{"f.py:5"});
  CHECK(e.guards()[1].asked_at == Texts{"f.py:7", "f.py:6"});
}

TEST_CASE("shape environment: zero and one are values like others") {
  ShapeEnvironment e;
  const Expr one = e.admit(SymbolKind::Size, origin("x.size(0)"), 1);
  const Expr zero = e.admit(SymbolKind::Size, origin("y.size(0)"), 0);
  CHECK_FALSE(one.is_constant());
  CHECK_FALSE(zero.is_constant());
  CHECK(e.guards().empty());
  CHECK(e.decide(equal(zero, 0), line("f.py:1")));
  CHECK_FALSE(e.decide(equal(one, 0), line("f.py:2")));
  CHECK_FALSE(e.decide(less(1, one), line("f.py:3")));
  CHECK(texts(e) == Texts{"y.size(0) == 0", "x.size(0) == 1"});
}

TEST_CASE("shape environment: general answers leave no guard where they are right") {
  ShapeEnvironment e;
  const Expr s = e.admit(SymbolKind::Size, origin("x.size(0)"), 8);
  const Expr t = e.admit(SymbolKind::Size, origin("x.size(1)"), 1);
  CHECK_FALSE(e.decide_general(equal(s, 1), nowhere()));
  CHECK_FALSE(e.decide_general(equal(s * t, 0), nowhere()));
  CHECK(e.decide_general(equal(t, 1), line("f.py:2")));
  CHECK(texts(e) == Texts{"x.size(1) == 1"});
  CHECK_FALSE(e.decide_or_default(equal(s, 1), false));
  CHECK(e.decide_or_default(equal(s, 1), true));
  CHECK(e.decide_or_default(equal(t, 1), false));
  CHECK(e.guards().size() == 1);
  const Expr n = e.admit(SymbolKind::Integer, origin("n"), 5);
  CHECK_FALSE(e.decide_general(equal(n, 1), line("f.py:3")));  // a number is no size
  CHECK(e.guards().size() == 2);
}

TEST_CASE("shape environment: equal sizes are different symbols until the program asks") {
  ShapeEnvironment e;
  const Expr s = e.admit(SymbolKind::Size, origin("x.size(0)"), 8);
  const Expr t = e.admit(SymbolKind::Size, origin("y.size(1)"), 8);
  const Expr u = e.admit(SymbolKind::Size, origin("z.size(0)"), 8);
  CHECK_FALSE(s == t);
  CHECK(e.answer(equal(s, t)) == Answer::Unknown);
  CHECK(e.decide(equal(s, t), line("f.py:2")));
  CHECK(e.simplify(t) == s);
  CHECK(e.decide(equal(u, t), line("f.py:3")));
  CHECK(e.decide(equal(s, u), nowhere()));
  CHECK_FALSE(e.decide(less(9, u), line("f.py:4")));
  CHECK(texts(e) == Texts{"x.size(0) == y.size(1)", "x.size(0) == z.size(0)", "x.size(0) <= 9"});
}

TEST_CASE("shape environment: conditions are written without idle parts") {
  ShapeEnvironment e;
  const Expr s = e.admit(SymbolKind::Size, origin("x.size(0)"), 1);
  const Condition one = equal(s, 1), small = less_equal(s, 1);
  CHECK(e.decide(Condition::any({Condition::all({one, Condition::any({one, small})}), equal(s, 0)}),
                 line("f.py:1")));
  CHECK(texts(e) == Texts{"x.size(0) == 1 or x.size(0) == 0"});
}

TEST_CASE("shape environment: a value for all calls") {
  ShapeEnvironment e;
  const Expr s = e.admit(SymbolKind::Size, origin("x.size(0)"), 8);
  CHECK(e.specialise(2 * s - 2 * s + 4, nowhere()) == 4);
  CHECK(e.specialise(floordiv(s, 3), line("f.py:1")) == 2);
  CHECK(e.specialise(floordiv(s, 3), nowhere()) == 2);
  CHECK(texts(e) == Texts{"x.size(0) // 3 == 2"});
  CHECK(e.specialise(s, line("f.py:2")) == 8);
  CHECK(texts(e) == Texts{"x.size(0) == 8"});
  CHECK(e.simplify(s) == Expr(8));
  const Expr zero = e.admit(SymbolKind::Integer, origin("n"), 0);
  CHECK_THROWS_AS(e.specialise(floordiv(s, zero), line("f.py:3")), ArithmeticError);
  CHECK_THROWS_AS(e.admit(SymbolKind::Integer, origin("n"), kMaxInt), Unsupported);
}

TEST_CASE("shape environment: questions about data say what would decide them") {
  ShapeEnvironment e;
  const Expr s = e.admit(SymbolKind::Size, origin("x.size(0)"), 8);
  const Expr n = e.data_dependent({.name = "x.sum().item()", .made_at = "f.py:1"});
  CHECK_FALSE(e.hint(n + s));
  try {
    e.decide(less(n, 5), line("f.py:2"));
    FAIL("it is not known");
  } catch (const DataDependence& failure) {
    CHECK(e.symbol(failure.symbol()).origin.name == "x.sum().item()");
    CHECK(failure.asked_at() == "f.py:2");
    CHECK(failure.reason() ==
          "x.sum().item() <= 4 depends on x.sum().item() of f.py:1, which is not known before the graph "
          "runs, and is "
          "asked at f.py:2");
    CHECK(failure.hint() ==
          "torch._check(x.sum().item() <= 4) or torch._check(5 <= x.sum().item()) decides it");
  }
  CHECK_THROWS_AS(e.specialise(n, line("f.py:2")), DataDependence);
  CHECK(e.guards().empty());
  CHECK(e.check(less(n, 5), line("f.py:3")) == Checked::Recorded);
  CHECK(e.decide(less(n, 5), nowhere()));
  CHECK(e.check(less(n, 7), nowhere()) == Checked::Holds);
  CHECK(e.check(less(9, n), line("f.py:4")) == Checked::Fails);
  CHECK(e.decide(less(n, 5), nowhere()));
  REQUIRE(e.assertions().size() == 1);
  CHECK(e.assertions()[0].asked_at == "f.py:3");
  CHECK(e.guards().empty());
  // One known part decides.
  CHECK(e.decide(Condition::any({equal(n, 2), equal(s, 8)}), line("f.py:5")));
  CHECK(texts(e) == Texts{"x.size(0) == 8"});
}

TEST_CASE("shape environment: sizes that depend on data") {
  ShapeEnvironment e;
  const Expr s = e.admit(SymbolKind::Size, origin("x.size(0)"), 8);
  const Expr n = e.data_dependent(origin("n"));
  e.assume(less_equal(n, s));
  CHECK(e.assertions().empty());
  CHECK(e.answer(less(s, n)) == Answer::False);
  CHECK_THROWS_AS(e.decide_general(equal(n, 1), line("f.py:1")), DataDependence);
  CHECK(e.expect_size(n, line("f.py:2")) == Checked::Recorded);
  CHECK(e.answer(less(n, 0)) == Answer::False);
  CHECK_FALSE(e.decide_general(equal(n, 1), nowhere()));
  CHECK_FALSE(e.decide_general(equal(n, 0), nowhere()));
  CHECK(e.answer(equal(n, 1)) == Answer::Unknown);
  CHECK_THROWS_AS(e.decide(equal(n, 1), line("f.py:3")), DataDependence);
  // Known to be equal to what has a value, it is decided by that.
  CHECK(e.check(equal(n, s), line("f.py:4")) == Checked::Recorded);
  CHECK(e.simplify(n) == s);
  CHECK_FALSE(e.decide(equal(n, 1), line("f.py:5")));
  CHECK(texts(e) == Texts{"x.size(0) != 1"});
  CHECK(e.assertions().size() == 2);
}

TEST_CASE("shape environment: checks of values at hand are guards") {
  ShapeEnvironment e;
  const Expr s = e.admit(SymbolKind::Size, origin("x.size(0)"), 8);
  const Expr n = e.data_dependent(origin("n"));
  CHECK(e.check(less(s, 9), line("f.py:1")) == Checked::Recorded);
  CHECK(e.check(less(s, 8), line("f.py:2")) == Checked::Fails);
  CHECK(e.check(Condition::all({less(2, s), less(s, 5)}), line("f.py:3")) == Checked::Fails);
  CHECK(texts(e) == Texts{"x.size(0) <= 8"});
  CHECK(e.check(Condition::all({less(2, s), less(n, s)}), line("f.py:4")) == Checked::Recorded);
  CHECK(texts(e) == Texts{"3 <= x.size(0) <= 8"});
  CHECK(e.assertions().size() == 1);
  CHECK(e.answer(less(n, 8)) == Answer::True);
}

TEST_CASE("shape environment: marks") {
  ShapeEnvironment e;
  const Expr fixed = e.admit(SymbolKind::Size, origin("x.size(0)"), 8, {MarkKind::Static});
  CHECK(fixed == Expr(8));
  const Expr s = e.admit(SymbolKind::Size, {.name = "x.size(1)", .made_at = "main.py:9"}, 64,
                         {MarkKind::Dynamic, {2, 512}});
  CHECK(e.answer(equal(s, 1)) == Answer::False);
  CHECK(e.answer(less(512, s)) == Answer::False);
  CHECK(texts(e) == Texts{"x.size(0) == 8", "2 <= x.size(1) <= 512"});
  CHECK(e.guards()[1].asked_at == Texts{"main.py:9"});
  const Expr maybe = e.admit(SymbolKind::Size, origin("x.size(2)"), 4, {MarkKind::MaybeDynamic});
  CHECK(e.specialise(maybe, line("f.py:1")) == 4);
  const Expr unbacked = e.admit(SymbolKind::Size, origin("x.size(3)"), 5, {MarkKind::Unbacked, {0, 9}});
  CHECK_FALSE(e.hint(unbacked));
  CHECK(e.answer(less(unbacked, 10)) == Answer::True);
  CHECK_THROWS_AS(e.decide(equal(unbacked, 5), line("f.py:2")), DataDependence);
  REQUIRE(e.violations().size() == 1);
  CHECK(e.violations()[0].text ==
        "x.size(3) is marked unbacked, but the program needs to know x.size(3) == 5");
  CHECK(e.violations()[0].asked_at == "f.py:2");
  CHECK_FALSE(e.decide_general(equal(unbacked, 1), nowhere()));
  CHECK(e.decide_general_or(equal(unbacked, 5), true, nowhere()));
  CHECK(e.violations().size() == 1);
}

TEST_CASE("shape environment: what the user says is a guard and no violation") {
  ShapeEnvironment e;
  const Expr s = e.admit(SymbolKind::Size, origin("x.size(0)"), 8, {MarkKind::Dynamic, {2, 64}});
  const Expr t = e.admit(SymbolKind::Size, origin("y.size(0)"), 16, {MarkKind::Dynamic, {4, 128}});
  e.promise(equal(t, 2 * s), "the dimension '2*n'");
  CHECK(e.answer(equal(mod(t, 2), 0)) == Answer::True);
  CHECK(texts(e).size() == 2);
  CHECK(e.violations().empty());
}

TEST_CASE("shape environment: what is checked of sizes without values holds before the graph runs") {
  ShapeEnvironment e;
  const Expr u = e.admit(SymbolKind::Size, origin("x.size(0)"), 5, {MarkKind::Unbacked});
  const Expr d = e.data_dependent(origin("u1"));
  CHECK(e.check(less(2, u), line("f.py:1")) == Checked::Recorded);
  CHECK(e.check(less(d, u), line("f.py:2")) == Checked::Recorded);
  CHECK_FALSE(e.depends_on_graph(e.assertions()[0].condition));
  CHECK(e.depends_on_graph(e.assertions()[1].condition));
  CHECK(e.facts_of_guards().answer(less(1, u)) == Answer::True);
  CHECK(e.facts_of_guards().answer(less(d, u)) == Answer::Unknown);
}

TEST_CASE("shape environment: marks that the program contradicts") {
  ShapeEnvironment e;
  const Mark dynamic{MarkKind::Dynamic};
  const Expr s = e.admit(SymbolKind::Size, origin("x.size(0)"), 8, dynamic);
  const Expr t = e.admit(SymbolKind::Size, origin("x.size(1)"), 8, dynamic);
  const Expr u = e.admit(SymbolKind::Size, origin("x.size(2)"), 8, {MarkKind::Dynamic, {2, 64}});
  const Expr v = e.admit(SymbolKind::Size, origin("x.size(3)"), 8, {MarkKind::Dynamic, {2, 64}});
  const Expr w = e.admit(SymbolKind::Size, origin("x.size(4)"), 8);
  CHECK_FALSE(e.decide(equal(s, 1), line("f.py:1")));
  CHECK(e.decide(equal(s, t), line("f.py:2")));
  CHECK(e.decide(equal(u, v), line("f.py:3")));
  CHECK(e.violations().empty());
  CHECK(e.specialise(t, line("f.py:4")) == 8);
  REQUIRE(e.violations().size() == 2);
  CHECK(e.violations()[0].text == "x.size(0) is marked dynamic, but the program takes it for 8");
  CHECK(e.violations()[0].asked_at == "f.py:4");
  CHECK(e.decide(divisible(u, 8), line("f.py:5")));
  REQUIRE(e.violations().size() == 4);
  CHECK(e.violations()[2].text ==
        "x.size(2) is marked to be 2 <= x.size(2) <= 64, but the program needs x.size(2) % 8 == 0");
  CHECK(e.violations()[3].asked_at == "f.py:5");
  CHECK(e.specialise(w, line("f.py:6")) == 8);
  e.admit(SymbolKind::Size, origin("y.size(0)"), 1, {MarkKind::Dynamic, {2, 64}});
  REQUIRE(e.violations().size() == 5);
  CHECK(e.violations()[4].text == "y.size(0) is 1, but is marked to be 2 <= y.size(0) <= 64");
}

TEST_CASE("shape environment: guards as they are checked") {
  ShapeEnvironment e(100);
  e.admit(SymbolKind::Size, origin("unused"), 7);
  const Expr s = e.admit(SymbolKind::Size, origin("x.size(0)"), 64);
  const Expr t = e.admit(SymbolKind::Size, origin("y.size(1)"), 64);
  CHECK(e.decide(equal(s, t), line("f.py:2")));
  CHECK_FALSE(e.decide(less(512, s), line("f.py:3")));
  const GuardProgram program(e);
  REQUIRE(program.inputs().size() == 2);
  CHECK(e.symbol(program.inputs()[0]).origin.name == "x.size(0)");
  CHECK(program.texts()[0] == "x.size(0) == y.size(1) (f.py:2)");
  std::vector<int64_t> work(program.program().slots());
  const auto explain = [&](const std::vector<int64_t>& values) {
    return program.explain(program.program().run(values, work), values);
  };
  CHECK(explain({2, 2}).empty());
  CHECK(explain({2, 3}) == "x.size(0) == y.size(1) (f.py:2): x.size(0) was 64, is 2, y.size(1) was 64, is 3");
  CHECK(explain({64, 3}) == "x.size(0) == y.size(1) (f.py:2): x.size(0) is 64, y.size(1) was 64, is 3");
  CHECK(explain({600, 600}) == "x.size(0) <= 512 (f.py:3): x.size(0) was 64, is 600");
}

// Random questions are asked with an assignment at hand. The assignments for which all questions have the
// same answers must be those that satisfy the guards: all of them, the minimal ones, and the program.
TEST_CASE("shape environment: guards hold exactly where all decisions come out the same") {
  const uint64_t seed = 77;
  MESSAGE("seed ", seed);
  testing::RandomConditions random(seed);
  size_t asked = 0, demanded = 0, remaining = 0;
  for (int round = 0; round < testing::rounds(2500); ++round) {
    random.draw_variables();
    const std::vector<testing::Assignment> all = random.assignments();
    const testing::Assignment& at_hand =
        all[static_cast<size_t>(random.pick(static_cast<int64_t>(all.size())))];
    ShapeEnvironment e;
    for (const Expr& v : random.variables()) {
      const bool is_size = v.range().low >= 0;
      const Mark range{MarkKind::MaybeDynamic, v.range()};
      e.admit(is_size ? SymbolKind::Size : SymbolKind::Integer, origin(v.variable_name().c_str()),
              at_hand[static_cast<size_t>(v.variable_id())], range);
    }
    std::vector<std::pair<Condition, bool>> decisions;
    for (int64_t n = 1 + random.pick(7); n > 0; --n) {
      Condition question = random.condition();
      if (random.chance(30)) question = e.answer(question) == Answer::Unknown ? question : !question;
      decisions.emplace_back(question, e.decide(question, line("f.py:1")));
      REQUIRE(decisions.back().second == evaluate(question, testing::value_in(at_hand)));
    }
    const std::vector<Demand> guards = e.guards();
    asked += decisions.size();
    demanded += e.demands().size();
    remaining += guards.size();
    const GuardProgram program(e);
    std::vector<int64_t> work(program.program().slots());
    std::string context;
    for (const auto& [question, answer] : decisions)
      context += text(question) + (answer ? "; " : " is false; ");
    context += " guards: ";
    for (const Demand& guard : guards) context += text(guard.condition) + "; ";
    CAPTURE(round);
    CAPTURE(context);
    for (const testing::Assignment& a : all) {
      const auto value = testing::value_in(a);
      const bool same = std::ranges::all_of(decisions, [&](const auto& decision) {
        return evaluate(decision.first, value) == decision.second;
      });
      const auto satisfied = [&](std::span<const Demand> demands) {
        return std::ranges::all_of(demands, [&](const Demand& d) { return evaluate(d.condition, value); });
      };
      std::vector<int64_t> inputs;
      for (const SymbolId id : program.inputs()) inputs.push_back(a[static_cast<size_t>(id)]);
      REQUIRE(satisfied(e.demands()) == same);
      REQUIRE(satisfied(guards) == same);
      REQUIRE((program.program().run(inputs, work).status == RunStatus::Holds) == same);
    }
    // No guard can be left out without letting in an assignment, of those that are not small perhaps.
    for (size_t i = 0; i < guards.size(); ++i) {
      Facts others;
      for (size_t k = 0; k < guards.size(); ++k)
        if (k != i) others.add(guards[k].condition);
      CHECK(others.answer(guards[i].condition) == Answer::Unknown);
    }
  }
  MESSAGE("questions ", asked, ", demands ", demanded, ", guards ", remaining);
}

// As above, with symbols that have no values: what may be asked of them, and what is checked. Wherever guards
// and assertions hold, each question that was decided has the same answer, and simplified expressions their
// values.
TEST_CASE("environment: expressions that are at most one are numbers, symbols stay") {
  ShapeEnvironment e;
  const Expr a = e.admit(SymbolKind::Size, {-1, "a", ""}, 3);
  const Expr b = e.admit(SymbolKind::Size, {-1, "b", ""}, 1);
  const Expr c = e.admit(SymbolKind::Size, {-1, "c", ""}, 1);
  CHECK(e.decide(less_equal(min(a, b), 1), line("f.py:1")));
  CHECK(e.decide(less_equal(c, 1), line("f.py:2")));
  e.specialise_small_expressions();
  CHECK(e.simplify(min(a, b)) == Expr(1));
  CHECK_FALSE(e.simplify(c).is_constant());
}

TEST_CASE("shape environment: decisions about data are right where the assertions hold") {
  const uint64_t seed = 78;
  MESSAGE("seed ", seed);
  testing::RandomConditions random(seed);
  size_t decided = 0, undecided = 0, asserted = 0, general = 0;
  for (int round = 0; round < testing::rounds(2500); ++round) {
    random.draw_variables();
    const std::vector<testing::Assignment> all = random.assignments();
    const testing::Assignment& real = all[static_cast<size_t>(random.pick(static_cast<int64_t>(all.size())))];
    ShapeEnvironment e;
    std::vector<bool> is_size;
    for (const Expr& v : random.variables()) {
      is_size.push_back(v.range().low >= 0 && random.chance(60));
      if (is_size.back())
        e.admit(SymbolKind::Size, origin(v.variable_name().c_str()),
                real[static_cast<size_t>(v.variable_id())], {MarkKind::None, v.range()});
      else
        e.data_dependent(origin(v.variable_name().c_str()), v.range());
    }
    std::vector<std::pair<Condition, bool>> decisions;
    std::vector<std::pair<Condition, bool>> general_answers;
    for (int64_t n = 2 + random.pick(7); n > 0; --n) {
      const Condition question = random.condition();
      const bool is_true = evaluate(question, testing::value_in(real));
      const size_t demands = e.demands().size();
      try {
        if (random.chance(40)) {
          const Checked checked = e.check(question, line("f.py:1"));
          // A contradiction is noticed at once or later, but a check that passes is never refused.
          if (is_true) REQUIRE(checked != Checked::Fails);
          if (checked == Checked::Fails) continue;
          if (!is_true) break;  // the program raises when it runs
        } else if (random.chance(30)) {
          const bool answer = e.decide_general(question, line("f.py:2"));
          if (e.demands().size() == demands) general_answers.emplace_back(question, answer);
        } else {
          decisions.emplace_back(question, e.decide(question, line("f.py:3")));
          REQUIRE(decisions.back().second == is_true);
        }
      } catch (const DataDependence&) {
        ++undecided;
        REQUIRE(e.demands().size() == demands);
      }
    }
    decided += decisions.size();
    asserted += e.assertions().size();
    general += general_answers.size();
    const std::vector<Demand> guards = e.guards();
    const Expr expression = random.expression(3);
    const Expr simple = e.simplify(expression);
    for (const testing::Assignment& a : all) {
      const auto value = testing::value_in(a);
      bool holds = true;
      for (const Demand& guard : guards) holds = holds && evaluate(guard.condition, value);
      for (const Assertion& assertion : e.assertions()) holds = holds && evaluate(assertion.condition, value);
      if (!holds) continue;
      CAPTURE(round);
      REQUIRE(evaluate(simple, value) == evaluate(expression, value));
      for (const auto& [question, answer] : decisions) REQUIRE(evaluate(question, value) == answer);
      bool is_large = true;
      for (size_t i = 0; i < a.size(); ++i) is_large = is_large && (!is_size[i] || a[i] > 1);
      for (const auto& [question, answer] : general_answers)
        if (is_large) REQUIRE(evaluate(question, value) == answer);
    }
  }
  MESSAGE("decided ", decided, ", undecided ", undecided, ", assertions ", asserted, ", general answers ",
          general);
  CHECK(decided > 1000);
  CHECK(general > 100);
}
