#include <doctest/doctest.h>

#include <algorithm>

#include "backend/cpu/target.h"

namespace oxy::backend::cpu {
namespace {

bool has(const Target& target, std::string_view feature) {
  return std::ranges::find(target.features, feature) != target.features.end();
}

TEST_CASE("target: what the machine has, up to the limit") {
  Target best = make_target(kBestIsa), plain = make_target(Isa::Scalar);
  CHECK(plain.isa == Isa::Scalar);
  CHECK(plain.vector_bytes == 16);
  CHECK(best.vector_bytes >= plain.vector_bytes);
  CHECK(best.l1_bytes >= 8 * 1024);
  CHECK(best.l2_bytes >= best.l1_bytes);
#if defined(__x86_64__)
  CHECK_FALSE(has(plain, "avx"));
  CHECK(has(best, "avx512f") == (best.isa == Isa::Avx512));
  CHECK(has(best, "avx2") == static_cast<bool>(__builtin_cpu_supports("avx2")));
  CHECK(has(best, "fma") == static_cast<bool>(__builtin_cpu_supports("fma")));
  Target middle = make_target(Isa::Avx2);
  CHECK_FALSE(has(middle, "avx512f"));
  if (__builtin_cpu_supports("avx2")) {
    CHECK(middle.isa == Isa::Avx2);
    CHECK(middle.vector_bytes == 32);
  }
#endif
}

}  // namespace
}  // namespace oxy::backend::cpu
