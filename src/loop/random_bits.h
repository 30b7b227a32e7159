// Philox 4x32-10, the counter-based generator of PyTorch's GPU kernels (Salmon et al., "Parallel random
// numbers: as easy as 1, 2, 3", SC 2011).
#pragma once

#include <array>
#include <cstdint>

namespace oxy::loop {

inline constexpr int64_t kPhiloxWords = 4;  // that it gives at once

// The words of the sequence `sequence` under the key `seed`, at `counter`.
std::array<uint32_t, 4> philox(uint64_t seed, uint64_t counter, uint64_t sequence);

// What Op::Philox computes: word `position % 4` of the sequence `position / 4`, as a number in (0, 1] that is
// made as cuRAND makes it (curand_uniform4).
float philox_uniform(int64_t seed, int64_t counter, int64_t position);

}  // namespace oxy::loop
