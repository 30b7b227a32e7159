#include <doctest/doctest.h>

#include <random>

#include "base/error.h"
#include "sym/expr.h"

using namespace oxy;
using namespace oxy::sym;

namespace {
Expr var(const char* name, int64_t id, int64_t low, int64_t high) {
  return Expr::variable(name, id, {low, high});
}
}  // namespace

TEST_CASE("sym: sums and products are canonical") {
  Expr i = var("i", 1, 0, 9), j = var("j", 2, 0, 7), s = var("s", 3, 2, 100);
  CHECK(sizeof(Expr) == 8);
  CHECK(i + j == j + i);
  CHECK(8 * (i + j) - 8 * j == 8 * i);
  CHECK((i + 1) * (i - 1) == i * i - 1);
  CHECK(s * (i + 2) == 2 * s + i * s);
  CHECK((i - i) == Expr(0));
  CHECK((i + j).hash() == (j + i).hash());
  CHECK((8 * i + j - 3).str() == "8*i + j - 3");
  CHECK((j - i).str() == "-i + j");
  CHECK(mod(8 * i + j, 4).str() == "j % 4");
  CHECK(floordiv(i + j, 3).str() == "(i + j) // 3");
  CHECK_THROWS_AS(Expr(int64_t{1} << 62) + Expr(0), ArithmeticError);
}

TEST_CASE("sym: division by ranges and divisibility") {
  Expr i = var("i", 1, 0, 99), j = var("j", 2, 0, 7), k = var("k", 3, 0, 3), s = var("s", 4, 2, 100);
  CHECK(floordiv(8 * i + j, 8) == i);
  CHECK(mod(8 * i + j, 8) == j);
  CHECK(floordiv(4 * i + k, 8) == floordiv(i, 2));
  CHECK(mod(4 * i + k, 8) == 4 * mod(i, 2) + k);
  CHECK(floordiv(floordiv(i, 2), 3) == floordiv(i, 6));
  CHECK(mod(mod(i, 12), 4) == mod(i, 4));
  CHECK(floordiv(mod(i, 12), 4) == mod(floordiv(i, 4), 3));
  CHECK(8 * floordiv(i, 8) + mod(i, 8) == i);
  CHECK(4 * mod(floordiv(i, 4), 3) + mod(i, 4) == mod(i, 12));
  CHECK(floordiv(i * s, s) == i);
  CHECK(mod(i * s, s) == Expr(0));
  CHECK(s * floordiv(i, s) + mod(i, s) == i);
  CHECK(floordiv(s * s + s, s + 1) == s);
  CHECK(known_divisible(6 * s + 9, 3));
  CHECK_FALSE(known_divisible(6 * s + 8, 3));
  CHECK(floordiv(Expr(-7), Expr(2)) == Expr(-4));
  CHECK(mod(Expr(-7), Expr(2)) == Expr(1));
  CHECK(mod(Expr(7), Expr(-2)) == Expr(-1));
  CHECK(ceildiv(Expr(7), Expr(2)) == Expr(4));
  CHECK_THROWS_AS(floordiv(i, 0), ArithmeticError);
}

TEST_CASE("sym: indices below a symbolic limit") {
  Expr s = var("s", 1, 2, 100), u = var("u", 2, 2, 50);
  Expr i = var("i", 3, 0, 9);
  Expr j = Expr::variable("j", 4, {0, 99}, s), k = Expr::variable("k", 5, {0, 49}, u);
  CHECK(floordiv(s * i + j, s) == i);
  CHECK(mod(s * i + j, s) == j);
  CHECK(floordiv(s * u * i + u * j + k, s * u) == i);
  CHECK(floordiv(u * j + k, u) == j);
  CHECK(mod(floordiv(s * u * i + u * j + k, u), s) == j);
  CHECK_FALSE(known_less(j, u));
  CHECK_FALSE(known_less(j + 1, s));
  // An index over both sizes, as quotient and remainder by one of them.
  Expr joint = Expr::variable("l", 6, {0, 4999}, s * u);
  CHECK(known_less(floordiv(joint, u), s));
  CHECK_FALSE(known_less(floordiv(joint, u), s - 1));
  CHECK(mod(floordiv(joint, u), s) == floordiv(joint, u));
  CHECK(u * mod(floordiv(joint, u), s) + mod(joint, u) == joint);
  // Windows of two lie inside.
  Expr half = Expr::variable("h", 7, {0, 49}, floordiv(s, 2));
  CHECK(known_less(2 * half + 1, s));
  CHECK_FALSE(known_less(2 * half + 2, s));
  CHECK_FALSE(known_less(3 * half, s));
}

TEST_CASE("sym: minimum, maximum and comparison by ranges") {
  Expr i = var("i", 1, 0, 9), s = var("s", 2, 10, 100);
  CHECK(min(i, s) == i);
  CHECK(max(i, s) == s);
  CHECK(min(min(i, 7), 5) == min(i, 5));
  CHECK(min(i, i + 1) == i);
  CHECK(known_less(i, s));
  CHECK_FALSE(known_less(i, i));
  CHECK(known_less_equal(i, i));
  CHECK(known_equal(mod(2 * s, 2), 0));
  CHECK_FALSE(known_equal(i, s));
}

TEST_CASE("sym: substitution, variables and linear forms") {
  Expr i = var("i", 1, 0, 9), j = var("j", 2, 0, 7);
  Expr e = floordiv(i, 8) + mod(i, 8);
  auto replaced =
      substitute(e, [&](int64_t id) { return id == 1 ? std::optional<Expr>(8 * i + j) : std::nullopt; });
  CHECK(replaced == i + j);
  CHECK(variables(i + j * i).size() == 2);
  auto linear = linear_in(3 * i + i * j + 4, 1);
  REQUIRE(linear);
  CHECK(linear->first == j + 3);
  CHECK(linear->second == Expr(4));
  CHECK_FALSE(linear_in(mod(i, 4), 1));
  CHECK_FALSE(linear_in(i * i, 1));
  CHECK_THROWS_AS(evaluate(i, [](int64_t) { return std::nullopt; }), InternalError);
}

// Random expressions over small ranges: the simplified form must have the value of the plain arithmetic, and
// the claimed range must hold it.
TEST_CASE("sym: simplification keeps values") {
  std::mt19937 random(7);
  auto pick = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  struct Pair {
    Expr e;
    std::vector<int64_t> values;
  };
  const int extents[] = {5, 8, 3, 12};
  std::vector<std::array<int64_t, 4>> points;
  for (int n = 0; n < 24; ++n) points.push_back({pick(5), pick(8), pick(3), pick(12)});
  for (int round = 0; round < 1500; ++round) {
    std::vector<Pair> pool;
    for (int v = 0; v < 4; ++v) {
      Pair p{Expr::variable("v" + std::to_string(v), v, {0, extents[v] - 1}), {}};
      for (auto& point : points) p.values.push_back(point[static_cast<size_t>(v)]);
      pool.push_back(p);
    }
    for (int step = 0; step < 7; ++step) {
      const Pair& a = pool[static_cast<size_t>(pick(static_cast<int>(pool.size())))];
      const Pair& b = pool[static_cast<size_t>(pick(static_cast<int>(pool.size())))];
      int64_t c = std::array<int64_t, 9>{2, 3, 4, 6, 8, 12, 24, -3, -4}[static_cast<size_t>(pick(9))];
      int kind = pick(8);
      if ((kind == 3 || kind == 4) && c < 0) c = -c;
      Pair next;
      switch (kind) {
        case 0:
          next.e = a.e + b.e;
          break;
        case 1:
          next.e = a.e - b.e;
          break;
        case 2:
          next.e = a.e * c;
          break;
        case 3:
          next.e = floordiv(a.e, c);
          break;
        case 4:
          next.e = mod(a.e, c);
          break;
        case 5:
          next.e = a.e + c;
          break;
        case 6:
          next.e = min(a.e, b.e);
          break;
        default:
          next.e = max(a.e, b.e);
          break;
      }
      for (size_t n = 0; n < points.size(); ++n) {
        int64_t x = a.values[n], y = b.values[n];
        int64_t q = x / c - ((x % c != 0) && ((x < 0) != (c < 0)));
        int64_t expected = kind == 0   ? x + y
                           : kind == 1 ? x - y
                           : kind == 2 ? x * c
                           : kind == 3 ? q
                           : kind == 4 ? x - q * c
                           : kind == 5 ? x + c
                           : kind == 6 ? std::min(x, y)
                                       : std::max(x, y);
        next.values.push_back(expected);
        int64_t got = evaluate(next.e, [&](int64_t id) { return points[n][static_cast<size_t>(id)]; });
        if (got != expected) FAIL(next.e.str() << " is " << got << ", not " << expected);
        Range r = next.e.range();
        if (got < r.low || got > r.high) FAIL(next.e.str() << " = " << got << " is outside its range");
      }
      pool.push_back(std::move(next));
    }
  }
}

TEST_CASE("sym: sums of constants stay constants") {
  Expr total = 0;
  for (int n = 0; n < 1'000'000; ++n) total = total + Expr(n) * Expr(2);
  CHECK(total == Expr(int64_t{999'999'000'000}));
}
