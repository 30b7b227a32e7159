// Programs whose reductions are split, run by the reference interpreter beside those that are whole.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <random>

#include "backend/shared/division.h"
#include "backend/shared/normal_form.h"
#include "loop/interpreter.h"
#include "loop/lowering.h"
#include "ops/core/registry.h"

using namespace oxy;
using loop::Array;

namespace {

// Small numbers of what a GPU has, so that small reductions are split.
backend::SplitCosts small_costs() {
  return {.few_rows = 24,
          .few_columns = 96,
          .long_reduction = 64,
          .long_row = 40,
          .long_column = 40,
          .most_parts = 12,
          .splits_pairs = true,
          .fills_device = true,
          .columns_together = 4,
          .masks_parts = true};
}

loop::Program lowered(const std::string& text) {
  ops::intern_schemas();
  loop::Program program = loop::lower(graph::parse(text), {.accumulates_in_double = false});
  loop::verify(program);
  return program;
}

Array random_array(std::mt19937& random, const loop::Buffer& buffer) {
  Array array{buffer.dtype, {}, {}, {}};
  int64_t count = 1;
  for (const Expr& size : buffer.sizes) {
    array.sizes.push_back(size.constant());
    count *= size.constant();
  }
  for (int64_t k = 0; k < count; ++k)
    if (is_floating(buffer.dtype))
      array.floats.push_back(3 + std::normal_distribution<double>()(random));
    else
      array.ints.push_back(std::uniform_int_distribution<int64_t>(-40, -1)(random));
  return array;
}

struct Outcome {
  size_t steps = 0;
  bool is_masked = false;  // some part is shorter than the others
  bool adds_up = false;    // sums of columns are made by the rows
};

// The program with its reductions split. `splits` receives what was decided.
loop::Program split_program(const loop::Program& whole, const backend::SplitCosts& costs,
                            backend::Splits& splits) {
  loop::Program split = whole;
  backend::normalise(split, costs, splits);
  loop::verify(split);
  return split;
}

void check_alike(const loop::Program& whole, const loop::Program& split, std::mt19937& random) {
  std::vector<Array> inputs;
  for (const loop::Buffer& buffer : whole.buffers)
    if (buffer.kind == loop::BufferKind::Input) inputs.push_back(random_array(random, buffer));
  const auto expected = loop::interpret(whole, inputs).outputs, got = loop::interpret(split, inputs).outputs;
  REQUIRE(got.size() == expected.size());
  for (size_t k = 0; k < got.size(); ++k) {
    const size_t count = std::max(expected[k].floats.size(), expected[k].ints.size());
    for (size_t i = 0; i < count; ++i) {
      const double a = got[k].number(i), b = expected[k].number(i);
      if (!(a == b || std::abs(a - b) <= 1e-5 * std::abs(b) + 1e-6))
        FAIL(fmt::format("output {} element {}: {} in parts, {} as a whole", k, i, a, b));
    }
  }
}

// Compares the program with itself after its reductions were split, as the costs say and as a trial may.
Outcome check_split(const std::string& text, const backend::SplitCosts& costs, std::mt19937& random) {
  CAPTURE(text);
  const loop::Program whole = lowered(text);
  backend::Splits splits;
  const loop::Program split = split_program(whole, costs, splits);
  check_alike(whole, split, random);
  for (const auto& [divided, choice] : splits.made) {
    if (choice.others.empty()) continue;
    const size_t other = std::uniform_int_distribution<size_t>(0, choice.others.size() - 1)(random);
    backend::Splits tuned{.tuned = {{divided, choice.others[other]}}, .made = {}};
    CAPTURE(to_string(divided));
    CAPTURE(choice.others[other]);
    check_alike(whole, split_program(whole, costs, tuned), random);
    CHECK(!tuned.made.contains(divided));
  }
  Outcome outcome{split.steps.size() - whole.steps.size()};
  for (const loop::Step& step : split.steps) {
    const auto& c = std::get<loop::Computation>(step);
    outcome.adds_up = outcome.adds_up || c.stores[0].mode == loop::StoreMode::AddInParts;
    for (const loop::Inst& inst : c.body.insts)
      outcome.is_masked =
          outcome.is_masked || (inst.op == loop::Op::Load && inst.operands[0] != loop::kNoInst);
  }
  return outcome;
}

}  // namespace

TEST_CASE("split reductions: rows and columns of any length") {
  std::mt19937 random(3);
  size_t split = 0, masked = 0;
  for (int k = 0; k < 60; ++k) {
    const int n = std::uniform_int_distribution(70, 500)(random);
    const int m = std::uniform_int_distribution(1, 7)(random);
    const bool is_row = k % 2 == 0;
    const std::string sizes = is_row ? fmt::format("{}, {}", m, n) : fmt::format("{}, {}", n, m);
    const int dim = is_row ? 1 : 0;
    const std::string text = fmt::format(R"(graph(%0 : float32[{0}], %1 : int64[{0}], %2 : bool[{0}]) {{
  %3 : float32[{1}] = aten::sum.dim_IntList(%0, [{2}], False)
  %4 : float32[{1}], %5 : float32[{1}] = aten::var_mean.correction(%0, [{2}], correction=1, keepdim=False)
  %6 : float32[{1}] = aten::amax(%0, [{2}], False)
  %7 : int64[{1}] = aten::amax(%1, [{2}], False)
  %8 : int64[{1}] = aten::sum.dim_IntList(%1, [{2}], False)
  %9 : bool[{1}] = aten::all.dim(%2, {2})
  %10 : bool[{1}] = aten::any.dim(%2, {2})
  %11 : float32[{1}] = aten::amin(%0, [{2}], False)
  %12 : float32[{1}] = aten::logsumexp(%0, [{2}], False)
  %13 : int64[{1}] = aten::argmax(%0, {2}, False)
  %14 : float32[{0}] = aten::_log_softmax(%0, {2}, False)
  return %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14
}}
)",
                                         sizes, m, dim);
    const Outcome outcome = check_split(text, small_costs(), random);
    split += outcome.steps > 0;
    masked += outcome.is_masked;
  }
  CHECK(split >= 40);
  CHECK(masked >= 20);
}

TEST_CASE("split reductions: columns that stay whole, and large ones") {
  std::mt19937 random(6);
  const auto is_split = [&](const backend::SplitCosts& costs) {
    const std::string text = R"(graph(%0 : float32[200, 12]) {
  %1 : float32[12] = aten::sum.dim_IntList(%0, [0], False)
  return %1
}
)";
    return check_split(text, costs, random).steps > 0;
  };
  const auto may_stay_whole = [&](int64_t whole_elements, int64_t many_columns) {
    backend::SplitCosts costs = small_costs();
    costs.whole_elements = whole_elements;
    costs.many_columns = many_columns;
    return !is_split(costs);
  };
  CHECK(!may_stay_whole(0, 0));
  CHECK(may_stay_whole(2400, 12));
  CHECK(!may_stay_whole(2399, 12));
  CHECK(!may_stay_whole(2400, 13));

  const auto is_split_for = [&](int64_t few_columns, int64_t elements_a_column, int64_t most_few_columns) {
    backend::SplitCosts costs = small_costs();
    costs.few_columns = few_columns;
    costs.elements_a_column = elements_a_column;
    costs.most_few_columns = most_few_columns;
    return is_split(costs);
  };
  // 2 parts of each group of columns are not worth a kernel that joins them.
  CHECK(!is_split_for(24, 0, 0));
  CHECK(!is_split_for(24, 100, 96));
  CHECK(is_split_for(24, 25, 96));
  CHECK(!is_split_for(24, 25, 24));
  CHECK(is_split_for(96, 1000, 24));  // few_columns is the least, whatever the size
}

TEST_CASE("split reductions: parts of the same length") {
  const auto parts = [](int64_t extent, int64_t most) {
    const std::vector<loop::LoopVariable> loops = {{Expr::variable("r", 1, {0, extent - 1}), extent}};
    return backend::divide(loops, most, true, 16);
  };
  CHECK(parts(1024, 11).total == 8);          // 0.73 of 11, of two steps each
  CHECK(parts(1024, 12).uneven.has_value());  // 0.67
  CHECK(parts(1008, 11).uneven.has_value());  // 9 would be 0.82 of 11, but of 112 each: no whole steps
  CHECK(parts(1008, 11).total == 11);
  CHECK(!parts(1008, 9).uneven.has_value());
}

TEST_CASE("split reductions: the number of parts that a trial asks for") {
  const loop::Program whole = lowered(R"(graph(%0 : float32[480, 12]) {
  %1 : float32[12] = aten::sum.dim_IntList(%0, [0], False)
  return %1
}
)");
  backend::Splits splits;
  const loop::Program split = split_program(whole, small_costs(), splits);
  REQUIRE(split.steps.size() == 2);
  REQUIRE(splits.made.size() == 1);
  const auto& [divided, choice] = *splits.made.begin();
  CHECK(to_string(divided) == "12 sums of 480 elements");
  CHECK(choice.taken == 8);
  CHECK(choice.others == std::vector<int64_t>{1, 4});  // with 12 parts at most, and 4 at least
  for (const int64_t count : choice.others) {
    backend::Splits tuned{.tuned = {{divided, count}}, .made = {}};
    const loop::Program other = split_program(whole, small_costs(), tuned);
    REQUIRE(other.steps.size() == (count == 1 ? 1 : 2));
    if (count > 1) CHECK(std::get<loop::Computation>(other.steps.back()).reduction[0].extent == Expr(count));
  }
}

TEST_CASE("split reductions: several loops") {
  std::mt19937 random(4);
  size_t masked = 0;
  for (int k = 0; k < 20; ++k) {
    const auto size = [&](int least, int most) { return std::uniform_int_distribution(least, most)(random); };
    const int c = size(1, 5), a = size(1, 4), h = size(5, 17), w = size(5, 17);
    const std::string text = fmt::format(R"(graph(%0 : float32[{0}, {1}, {2}, {3}]) {{
  %1 : float32[{1}], %2 : float32[{1}] = aten::var_mean.correction(%0, [0, 2, 3], correction=0, keepdim=False)
  %3 : float32[{1}] = aten::sum.dim_IntList(%0, [0, 2, 3], False)
  %4 : float32[] = aten::sum(%0)
  return %1, %2, %3, %4
}}
)",
                                         a, c, h, w);
    masked += check_split(text, small_costs(), random).is_masked;
  }
  CHECK(masked >= 5);
}

TEST_CASE("split reductions: rows add up columns on their way") {
  std::mt19937 random(5);
  backend::SplitCosts costs = small_costs();
  costs.row_programs = costs.long_row_programs = 6;
  costs.least_rows = 3;
  costs.row_block = 32;
  costs.longest_row = 64;
  for (int k = 0; k < 20; ++k) {
    const int n = std::uniform_int_distribution(40, 200)(random);
    const int m = std::uniform_int_distribution(2, 30)(random);
    const std::string text = fmt::format(R"(graph(%0 : float32[2, {0}, {1}], %1 : float32[2, {0}, {1}]) {{
  %2 : float32[2, {0}, {1}] = aten::mul.Tensor(%0, %1)
  %3 : float32[2, {0}, 1] = aten::mean.dim(%2, [2], True)
  %4 : float32[2, {0}, {1}] = aten::sub.Tensor(%0, %3)
  %5 : float32[{1}] = aten::sum.dim_IntList(%2, [0, 1], False)
  %6 : float32[{2}, {1}] = aten::view(%4, [{2}, {1}])
  %7 : float32[{1}] = aten::sum.dim_IntList(%6, [0], False)
  return %4, %5, %7
}}
)",
                                         n, m, 2 * n);
    CHECK(check_split(text, costs, random).adds_up);
  }
}

TEST_CASE("split reductions: a division covers every loop") {
  std::mt19937 random(6);
  for (int k = 0; k < 400; ++k) {
    std::vector<loop::LoopVariable> loops;
    for (int i = std::uniform_int_distribution(1, 3)(random); i > 0; --i)
      loops.push_back({Expr::variable("v", i, {0, 1}), std::uniform_int_distribution(1, 3000)(random)});
    const int64_t most = std::uniform_int_distribution(1, 600)(random);
    const int64_t alignment = k % 3 == 0 ? 64 : 16;
    const backend::Division division = backend::divide(loops, most, k % 4 != 0, alignment);
    int64_t total = 1;
    for (size_t i = 0; i < loops.size(); ++i) {
      const int64_t extent = loops[i].extent.constant(), length = division.lengths[i].constant();
      const int64_t count = division.counts[i];
      total *= count;
      if (i == division.uneven) {
        CHECK(length * count > extent);
        CHECK(length * (count - 1) < extent);  // every part has something
      } else {
        CHECK(length * count == extent);
      }
    }
    CHECK(total == division.total);
    CHECK(total <= most);
    if (k % 4 == 0) CHECK(!division.uneven);
  }
}
