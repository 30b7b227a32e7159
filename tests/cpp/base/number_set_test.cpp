#include <doctest/doctest.h>

#include <vector>

#include "base/number_set.h"

namespace oxy {
namespace {

std::vector<size_t> numbers(const NumberSet& set) {
  std::vector<size_t> list;
  set.for_each([&](size_t number) { list.push_back(number); });
  return list;
}

}  // namespace

TEST_CASE("number set: unions of numbers within and beyond the first word") {
  NumberSet set, other(63);
  CHECK(set.empty());
  for (const size_t number : {200, 5, 64, 5}) set.add(number);
  CHECK(numbers(set) == std::vector<size_t>{5, 64, 200});
  other.add(set);
  CHECK(numbers(other) == std::vector<size_t>{5, 63, 64, 200});
  CHECK_FALSE(other == set);
  set.add(NumberSet(63));
  CHECK(other == set);
  CHECK_FALSE(NumberSet(64).empty());
}

}  // namespace oxy
