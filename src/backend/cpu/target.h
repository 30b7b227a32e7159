// What generated code may assume of the machine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace oxy::backend::cpu {

enum class Isa : uint8_t { Scalar, Avx2, Avx512, Neon };

struct Target {
  Isa isa = Isa::Scalar;
  int vector_bytes = 16;  // width of the vectors that the generator uses
  std::vector<std::string>
      features;  // compiler feature names, tested on this machine: "avx512f", "fma", "f16c"
  int64_t l1_bytes = 32 * 1024;
  int64_t l2_bytes = 1024 * 1024;
};

#if defined(__aarch64__)
inline constexpr Isa kBestIsa = Isa::Neon;
#else
inline constexpr Isa kBestIsa = Isa::Avx512;
#endif

// This machine, using nothing above `limit`; lower where the machine lacks it.
Target make_target(Isa limit);

// This machine, by CPU features (cpuid), never by CPU name. OXYFUEL_ISA ("scalar", "avx2", "avx512") lowers
// it.
const Target& host_target();

}  // namespace oxy::backend::cpu
