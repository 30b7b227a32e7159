// What has changed between calls of a site: the places of numbers, and sizes and strides of tensors. The next
// capture takes them for varying numbers and symbols (eval/numbers).
#pragma once

#include <algorithm>
#include <set>
#include <string>

#include "guards/guard_set.h"

namespace oxy::driver {

class VaryingPlaces {
 public:
  // Adds what is a number, unless give_up() was called.
  void learn(const guards::Changes& changes) {
    if (given_up_) return;
    for (const guards::ChangedConstant& changed : changes.constants)
      if (changed.is_number) numbers_.insert(changed.place);
    // Where a size other than the first of its tensor changes, such as the length of texts or the height of
    // images, others will do so: the width, or the size of the last batch. So they will where one size after
    // the other has changed.
    const auto is_inner = [](const guards::ChangedSize& changed) {
      return changed.part == guards::IntegerPart::Size && changed.dimension > 0;
    };
    const auto is_new = [&](const guards::ChangedSize& changed) { return !sizes_.contains(changed); };
    all_sizes_ = all_sizes_ || std::ranges::any_of(changes.sizes, is_inner) ||
                 (!sizes_.empty() && std::ranges::any_of(changes.sizes, is_new));
    sizes_.insert(changes.sizes.begin(), changes.sizes.end());
  }
  // Forgets all for good: a capture without them came further, or what was captured with them cannot be
  // compiled.
  void give_up() {
    numbers_.clear();
    sizes_.clear();
    all_sizes_ = false;
    given_up_ = true;
  }
  bool given_up() const { return given_up_; }
  // The places of numbers, as GuardSet::describe() names them; null if there are none.
  const std::set<std::string>* numbers() const { return numbers_.empty() ? nullptr : &numbers_; }
  // All sizes of tensors are likely to vary.
  bool all_sizes() const { return all_sizes_; }
  // Null if there are none.
  const std::set<guards::ChangedSize>* sizes() const { return sizes_.empty() ? nullptr : &sizes_; }

 private:
  std::set<std::string> numbers_;
  std::set<guards::ChangedSize> sizes_;
  bool all_sizes_ = false;
  bool given_up_ = false;
};

}  // namespace oxy::driver
