#include "sym/relations/layout.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

#include "sym/random_conditions.h"

using namespace oxy;
using namespace oxy::sym;

namespace {

using Numbers = std::vector<int64_t>;

// From the definitions: each index has a place of its own, and the places are the first ones of memory.
bool is_contiguous(const Numbers& sizes, const Numbers& strides) {
  int64_t expected = 1;
  bool is_dense = true;
  for (size_t d = sizes.size(); d-- > 0;) {
    is_dense = is_dense && (sizes[d] == 1 || strides[d] == expected);
    expected *= sizes[d];
  }
  return is_dense || expected == 0;
}

bool is_permutation_of_block(const Numbers& sizes, const Numbers& strides) {
  const int64_t count = std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
  Numbers places{0};
  for (size_t d = 0; d < sizes.size(); ++d) {
    Numbers next;
    for (const int64_t place : places)
      for (int64_t i = 0; i < sizes[d]; ++i) next.push_back(place + i * strides[d]);
    places = std::move(next);
  }
  std::ranges::sort(places);
  for (int64_t i = 0; i < count; ++i)
    if (places[static_cast<size_t>(i)] != i) return false;
  return true;
}

}  // namespace

TEST_CASE("layouts: the conditions hold where the numbers do") {
  const uint64_t seed = 5;
  MESSAGE("seed ", seed);
  testing::RandomConditions random(seed);
  size_t contiguous_ones = 0, dense_ones = 0;
  for (int round = 0; round < testing::rounds(4000); ++round) {
    const auto rank = static_cast<size_t>(random.pick(4));
    Numbers numbers, sizes, strides(rank);
    for (size_t d = 0; d < rank; ++d) sizes.push_back(random.chance(8) ? 0 : 1 + random.pick(3));
    std::vector<size_t> order(rank);
    std::iota(order.begin(), order.end(), size_t{0});
    for (size_t d = rank; d > 1; --d)
      if (random.chance(40))
        std::swap(order[d - 1], order[static_cast<size_t>(random.pick(static_cast<int64_t>(d)))]);
    int64_t stride = 1;
    for (size_t d = rank; d-- > 0;) {
      strides[order[d]] = random.chance(10) ? random.pick(4) : stride;
      stride *= std::max<int64_t>(sizes[order[d]], 1);
    }
    // Half of the numbers are symbols.
    std::vector<Expr> size_expressions, stride_expressions;
    const auto add = [&](std::vector<Expr>& list, int64_t value) {
      const auto id = static_cast<int64_t>(numbers.size());
      list.push_back(random.chance(50) ? Expr(value)
                                       : Expr::variable("v" + std::to_string(id), id, {0, kMaxInt}));
      numbers.push_back(value);
    };
    for (size_t d = 0; d < rank; ++d) add(size_expressions, sizes[d]), add(stride_expressions, strides[d]);
    const auto value = testing::value_in(numbers);
    const bool expected = is_contiguous(sizes, strides);
    contiguous_ones += expected;
    REQUIRE(evaluate(contiguous(size_expressions, stride_expressions), value) == expected);
    if (std::ranges::find(sizes, 0) != sizes.end()) continue;
    const bool is_dense = is_permutation_of_block(sizes, strides);
    dense_ones += is_dense;
    REQUIRE(evaluate(non_overlapping_and_dense(size_expressions, stride_expressions,
                                               [&](const Expr& a, const Expr& b) {
                                                 return evaluate(a, value) < evaluate(b, value);
                                               }),
                     value) == is_dense);
  }
  CHECK(contiguous_ones > 500);
  CHECK(dense_ones > 500);
}

TEST_CASE("layouts: channels last") {
  const Expr n = Expr::variable("n", 0, {0, kMaxInt}), h = Expr::variable("h", 1, {2, kMaxInt});
  const std::vector<Expr> sizes{n, 3, h, 5};
  const std::vector<Expr> last{15 * h, 1, 15, 3}, first{15 * h, 5 * h, 5, 1};
  CHECK(channels_last_contiguous(sizes, last, 2) == Condition(true));
  CHECK(channels_last_contiguous(sizes, first, 2) == Condition(false));
  CHECK(contiguous(sizes, last) == equal(n * h, 0));
  CHECK(contiguous(sizes, first) == Condition(true));
  CHECK(channels_last_strides(sizes, last, 2) == not_equal(n, 0));
  CHECK(channels_last_strides(sizes, first, 2) == Condition(false));
  CHECK(channels_last_contiguous(sizes, last, 3) == Condition(false));
  CHECK(contiguous({}, {}) == Condition(true));
  // Strides as PyTorch computes them of symbols, and as products of sizes.
  const std::vector<Expr> flat{n, h, n};
  CHECK(contiguous(flat, std::vector<Expr>{h * max(n, 1), max(n, 1), 1}) == Condition(true));
  CHECK(contiguous(flat, std::vector<Expr>{h * n, n, 1}) == Condition(true));
}
