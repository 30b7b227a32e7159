// Liveness: which locals a frame can still read.
#pragma once

#include <cstdint>
#include <vector>

#include "bytecode/instruction.h"

namespace oxy::bytecode {

// A set of localsplus indices.
class LocalSet {
 public:
  explicit LocalSet(int32_t count = 0) : words_(size_t(count + 63) / 64) {}
  bool contains(int32_t local) const { return words_[size_t(local) / 64] >> (local % 64) & 1; }
  void insert(int32_t local) { words_[size_t(local) / 64] |= uint64_t{1} << (local % 64); }
  void erase(int32_t local) { words_[size_t(local) / 64] &= ~(uint64_t{1} << (local % 64)); }
  bool merge(const LocalSet& other);  // adds those of `other`; true if the set grew

 private:
  std::vector<uint64_t> words_;
};

// By instruction: the locals whose value before it may be read later on any path, also through exception
// handlers. `locals`: how many the code has. Cells and free variables are always live, since closures can see
// them. Reads through f_locals do not count.
std::vector<LocalSet> live_locals(const Code& code, int32_t locals);

}  // namespace oxy::bytecode
