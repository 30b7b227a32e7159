#include "backend/cpu/target.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "base/config.h"
#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace oxy::backend::cpu {
namespace {

#if defined(__x86_64__)
enum class Register : uint8_t { Ecx, Edx, Ebx, Eax };
enum class State : uint8_t { Sse, Ymm, Zmm };  // what the operating system must save

struct Feature {
  std::string_view name;
  uint32_t leaf;
  uint32_t subleaf;
  Register reg;
  int bit;
  State state;
};

constexpr std::array kFeatures = {
    Feature{"sse3", 1, 0, Register::Ecx, 0, State::Sse},
    Feature{"ssse3", 1, 0, Register::Ecx, 9, State::Sse},
    Feature{"sse4.1", 1, 0, Register::Ecx, 19, State::Sse},
    Feature{"sse4.2", 1, 0, Register::Ecx, 20, State::Sse},
    Feature{"popcnt", 1, 0, Register::Ecx, 23, State::Sse},
    Feature{"lzcnt", 0x80000001, 0, Register::Ecx, 5, State::Sse},
    Feature{"bmi", 7, 0, Register::Ebx, 3, State::Sse},
    Feature{"bmi2", 7, 0, Register::Ebx, 8, State::Sse},
    Feature{"avx", 1, 0, Register::Ecx, 28, State::Ymm},
    Feature{"f16c", 1, 0, Register::Ecx, 29, State::Ymm},
    Feature{"fma", 1, 0, Register::Ecx, 12, State::Ymm},
    Feature{"avx2", 7, 0, Register::Ebx, 5, State::Ymm},
    Feature{"avx512f", 7, 0, Register::Ebx, 16, State::Zmm},
    Feature{"avx512dq", 7, 0, Register::Ebx, 17, State::Zmm},
    Feature{"avx512cd", 7, 0, Register::Ebx, 28, State::Zmm},
    Feature{"avx512bw", 7, 0, Register::Ebx, 30, State::Zmm},
    Feature{"avx512vl", 7, 0, Register::Ebx, 31, State::Zmm},
    Feature{"avx512vbmi", 7, 0, Register::Ecx, 1, State::Zmm},
    Feature{"avx512vnni", 7, 0, Register::Ecx, 11, State::Zmm},
    Feature{"avx512bf16", 7, 1, Register::Eax, 5, State::Zmm},
};

constexpr uint32_t kOsxsaveBit = 27;  // cpuid 1, ecx

State saved_state() {
  uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx) || !(ecx >> kOsxsaveBit & 1)) return State::Sse;
  uint32_t low = 0, high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  if ((low & 0xe6) == 0xe6) return State::Zmm;
  return (low & 0x6) == 0x6 ? State::Ymm : State::Sse;
}

std::vector<std::string> machine_features(State limit) {
  State state = std::min(saved_state(), limit);
  std::vector<std::string> names;
  for (const Feature& feature : kFeatures) {
    uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
    if (feature.state > state || !__get_cpuid_count(feature.leaf, feature.subleaf, &eax, &ebx, &ecx, &edx))
      continue;
    uint32_t value = feature.reg == Register::Ecx   ? ecx
                     : feature.reg == Register::Edx ? edx
                     : feature.reg == Register::Ebx ? ebx
                                                    : eax;
    if (value >> feature.bit & 1) names.emplace_back(feature.name);
  }
  return names;
}
#endif

bool has_all(const std::vector<std::string>& features, std::initializer_list<std::string_view> wanted) {
  return std::ranges::all_of(
      wanted, [&](std::string_view name) { return std::ranges::find(features, name) != features.end(); });
}

int64_t cache_bytes(int name, int64_t otherwise) {
  long bytes = sysconf(name);
  return bytes > 0 ? bytes : otherwise;
}

}  // namespace

Target make_target(Isa limit) {
  Target target;
  target.l1_bytes = cache_bytes(_SC_LEVEL1_DCACHE_SIZE, target.l1_bytes);
  target.l2_bytes = cache_bytes(_SC_LEVEL2_CACHE_SIZE, target.l2_bytes);
#if defined(__x86_64__)
  State state = limit == Isa::Avx512 ? State::Zmm : limit == Isa::Avx2 ? State::Ymm : State::Sse;
  target.features = machine_features(state);
  if (has_all(target.features, {"avx512f", "avx512dq", "avx512bw", "avx512vl", "avx2", "fma", "f16c"})) {
    target.isa = Isa::Avx512;
    target.vector_bytes = 64;
  } else if (has_all(target.features, {"avx2", "fma", "f16c"})) {
    target.features = machine_features(State::Ymm);
    target.isa = Isa::Avx2;
    target.vector_bytes = 32;
  } else {
    target.features = machine_features(State::Sse);
  }
#elif defined(__aarch64__)
  if (limit == Isa::Neon) {
    target.isa = Isa::Neon;
    target.features = {"neon"};
  }
#endif
  return target;
}

const Target& host_target() {
  static const Target once = [] {
    std::string_view isa = config().isa;
    if (isa == "scalar") return make_target(Isa::Scalar);
    if (isa == "avx2") return make_target(Isa::Avx2);
    if (isa == "avx512") return make_target(Isa::Avx512);
    if (isa == "neon") return make_target(Isa::Neon);
    return make_target(kBestIsa);
  }();
  return once;
}

}  // namespace oxy::backend::cpu
