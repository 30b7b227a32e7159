#include "loop/random_bits.h"

#include <doctest/doctest.h>

#include <set>
#include <utility>

#include "loop/dropout_threads.h"

using namespace oxy;

// The known answers of the authors' library (Random123, kat_vectors).
TEST_CASE("random bits: Philox 4x32-10 has its authors' answers") {
  using Words = std::array<uint32_t, 4>;
  CHECK(loop::philox(0, 0, 0) == Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(loop::philox(~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0}) ==
        Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(loop::philox(0x299f31d0a4093822, 0x85a308d3243f6a88, 0x0370734413198a2e) ==
        Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("random bits: elements of a dropout get numbers of their own") {
  for (const int64_t width : {1, 2, 4, 8}) {
    constexpr int64_t kThreads = 16, kCount = 320;
    std::set<std::pair<int64_t, int64_t>> seen;
    for (int64_t i = 0; i < kCount; ++i) {
      const loop::DropoutPlace place = loop::dropout_place(i, kCount, width, kThreads);
      seen.emplace(place.counter.constant(), place.position.constant());
      CHECK(place.position.constant() < 4 * kThreads);
    }
    CHECK(seen.size() == kCount);
  }
}
