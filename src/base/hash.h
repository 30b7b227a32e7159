// Hashes of texts: stable across processes and machines, so fit for keys that are written to disk.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace oxy {

struct Hash128 {
  uint64_t low = 0;
  uint64_t high = 0;
  friend auto operator<=>(const Hash128&, const Hash128&) = default;
};

uint64_t hash64(std::string_view bytes);
Hash128 hash128(std::string_view bytes);
std::string to_hex(const Hash128& hash);  // 32 digits

// Order matters: combine(combine(s, a), b) differs from combine(combine(s, b), a).
constexpr uint64_t hash_combine(uint64_t seed, uint64_t value) {
  seed ^= value + 0x9e3779b97f4a7c15u + (seed << 12) + (seed >> 4);
  seed *= 0xbf58476d1ce4e5b9u;
  return seed ^ (seed >> 31);
}

}  // namespace oxy

template <>
struct std::hash<oxy::Hash128> {
  size_t operator()(const oxy::Hash128& hash) const noexcept { return hash.low; }
};
