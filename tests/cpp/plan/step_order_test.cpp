#include "plan/step_order.h"

#include <doctest/doctest.h>

using oxy::plan::Access;
using oxy::plan::predecessors;

namespace {

using Order = std::vector<std::vector<size_t>>;

Access reading(int32_t memory, int64_t begin = 0, int64_t end = 1) {
  return {memory, begin, end, false};
}

Access writing(int32_t memory, int64_t begin = 0, int64_t end = 1) {
  return {memory, begin, end, true};
}

Order order_of(const std::vector<std::vector<Access>>& steps) {
  return predecessors(steps);
}

}  // namespace

TEST_CASE("plan: steps that read the same memory need no order") {
  CHECK(order_of({{reading(0), writing(1)}, {reading(0), writing(2)}}) == Order{{}, {}});
}

TEST_CASE(
    "plan: a step follows those that write what it reads, overwrite what it reads, or write what it writes") {
  CHECK(order_of({{writing(0)}, {reading(0)}}) == Order{{}, {0}});
  CHECK(order_of({{reading(0)}, {writing(0)}}) == Order{{}, {0}});
  CHECK(order_of({{writing(0)}, {writing(0)}}) == Order{{}, {0}});
}

TEST_CASE("plan: parts of one memory are apart where no byte is shared") {
  CHECK(order_of({{writing(0, 0, 8)}, {writing(0, 8, 16)}, {reading(0, 7, 9)}}) == Order{{}, {}, {0, 1}});
}

TEST_CASE("plan: an order that follows from others is left out") {
  CHECK(order_of({{writing(0)}, {reading(0), writing(1)}, {reading(0), reading(1)}}) == Order{{}, {0}, {1}});
  // Two ways that meet again.
  CHECK(order_of({{writing(0)},
                  {reading(0), writing(1)},
                  {reading(0), writing(2)},
                  {reading(0), reading(1), reading(2)}}) == Order{{}, {0}, {0}, {1, 2}});
}
