// A set of small numbers: one word as long as they are below 64, so that unions of many sets ask for no
// memory.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace oxy {

class NumberSet {
 public:
  NumberSet() = default;
  explicit NumberSet(size_t number) { add(number); }

  void add(size_t number) {
    if (number < kBits) {
      first_ |= uint64_t{1} << number;
      return;
    }
    const size_t word = number / kBits - 1;
    if (word >= more_.size()) more_.resize(word + 1);
    more_[word] |= uint64_t{1} << number % kBits;
  }

  // Adds the numbers of the other set.
  void add(const NumberSet& other) {
    first_ |= other.first_;
    if (other.more_.size() > more_.size()) more_.resize(other.more_.size());
    for (size_t i = 0; i < other.more_.size(); ++i) more_[i] |= other.more_[i];
  }

  // No number is ever taken out, so that a word behind the first is there for one that it has.
  bool empty() const { return first_ == 0 && more_.empty(); }

  // Calls `f` with each number, in order.
  template <typename F>
  void for_each(const F& f) const {
    for_each_of(first_, 0, f);
    for (size_t i = 0; i < more_.size(); ++i) for_each_of(more_[i], (i + 1) * kBits, f);
  }

  friend bool operator==(const NumberSet&, const NumberSet&) = default;

 private:
  static constexpr size_t kBits = 64;

  template <typename F>
  static void for_each_of(uint64_t word, size_t base, const F& f) {
    for (; word != 0; word &= word - 1) f(base + static_cast<size_t>(std::countr_zero(word)));
  }

  uint64_t first_ = 0;
  std::vector<uint64_t> more_;
};

}  // namespace oxy
