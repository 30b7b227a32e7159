#include "loop/random_bits.h"

#include <cmath>

namespace oxy::loop {

namespace {

constexpr uint64_t kFactor0 = 0xD2511F53, kFactor1 = 0xCD9E8D57;
constexpr uint32_t kStep0 = 0x9E3779B9, kStep1 = 0xBB67AE85;
constexpr int kRounds = 10;

constexpr uint32_t low(uint64_t x) {
  return static_cast<uint32_t>(x);
}
constexpr uint32_t high(uint64_t x) {
  return static_cast<uint32_t>(x >> 32);
}

}  // namespace

std::array<uint32_t, 4> philox(uint64_t seed, uint64_t counter, uint64_t sequence) {
  std::array<uint32_t, 4> words = {low(counter), high(counter), low(sequence), high(sequence)};
  uint32_t key0 = low(seed), key1 = high(seed);
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t product0 = kFactor0 * words[0], product1 = kFactor1 * words[2];
    words = {high(product1) ^ words[1] ^ key0, low(product1), high(product0) ^ words[3] ^ key1,
             low(product0)};
    key0 += kStep0;
    key1 += kStep1;
  }
  return words;
}

float philox_uniform(int64_t seed, int64_t counter, int64_t position) {
  const auto place = static_cast<uint64_t>(position);
  const std::array<uint32_t, 4> words =
      philox(static_cast<uint64_t>(seed), static_cast<uint64_t>(counter), place / 4);
  return std::fma(static_cast<float>(words[place % 4]), 0x1p-32F, 0x1p-33F);
}

}  // namespace oxy::loop
