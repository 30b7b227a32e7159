// Views that operators make at run time, because no lowering covers them.
#include <doctest/doctest.h>

#include "backend/graph_checks.h"

using namespace oxy;

namespace {

// Where the intermediates of this rank are stored.
std::vector<plan::Storage> storages_of_rank(const std::string& text, size_t rank) {
  const plan::Plan plan =
      oxy::testing::scheduled(oxy::testing::lowered(text), backend::cpu::host_target(), {.parallelism = 1});
  std::vector<plan::Storage> found;
  for (const plan::Buffer& buffer : plan.buffers)
    if (buffer.sizes.size() == rank && buffer.storage != plan::Storage::Input)
      found.push_back(buffer.storage);
  return found;
}

// Where the only intermediate of this rank is stored.
plan::Storage storage_of_rank(const std::string& text, size_t rank) {
  const std::vector<plan::Storage> found = storages_of_rank(text, rank);
  REQUIRE(found.size() == 1);
  return found.front();
}

}  // namespace

TEST_CASE("called views: the memory that a result shows is no part of the arena") {
  CHECK(storage_of_rank(R"(
    graph(%0 : float32[8, 16, 2]) {
      %1 : float32[8, 16, 2] = aten::mul.Tensor(%0, 2)
      %2 : complex64[8, 16] = aten::view_as_complex(%1)
      return %2
    })",
                        3) == plan::Storage::Output);
}

TEST_CASE("called views: nothing else is written where a view is read later") {
  CHECK(storage_of_rank(R"(
    graph(%0 : float32[8, 16, 2], %1 : float32[16, 16]) {
      %2 : float32[8, 16, 2] = aten::mul.Tensor(%0, 2)
      %3 : complex64[8, 16] = aten::view_as_complex(%2)
      %4 : float32[16, 16] = aten::mm(%1, %1)
      %5 : float32[16, 16] = aten::cos(%4)
      %6 : float32[16, 16] = aten::mm(%5, %5)
      %7 : float32[8, 16] = aten::abs(%3)
      return %6, %7
    })",
                        3) == plan::Storage::Output);
}

TEST_CASE("called views: others have no memory of their own") {
  CHECK(storage_of_rank(R"(
    graph(%0 : float32[8, 16, 2], %1 : float32[2, 4]) {
      %2 : float32[8, 16, 2] = aten::sin(%0)
      %3 : float32[128, 2] = aten::view(%2, [128, 2])
      %4 : float32[128, 4] = aten::mm(%3, %1)
      return %4
    })",
                        3) == plan::Storage::Arena);
}

TEST_CASE("called views: an operator that counts from a storage gets one that begins with its argument") {
  const std::vector<plan::Storage> found = storages_of_rank(R"(
    graph(%0 : float32[4, 4, 4], %1 : float32[4]) {
      %2 : float32[4, 4, 4] = aten::sin(%0)
      %3 : float32[4, 4, 4] = aten::as_strided_scatter(%2, %1, [4], [17], 16)
      %4 : float32[4, 4] = aten::sum.dim_IntList(%3, [0], False, dtype=None)
      return %4
    })",
                                                            3);
  CHECK(found == std::vector{plan::Storage::Output, plan::Storage::Extern});
}
