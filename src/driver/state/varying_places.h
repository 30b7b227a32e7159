// What a function or region has learned of the numbers that it reads: those that changed vary the next time
// (eval/varying_number.h).
#pragma once

#include <set>
#include <string>
#include <vector>

#include "guards/guard_set.h"

namespace oxy::driver {

class VaryingPlaces {
 public:
  void learn(const std::vector<guards::ChangedConstant>& constants) {
    for (const guards::ChangedConstant& changed : constants)
      if (changed.is_number && !given_up_) places_.insert(changed.place);
  }
  // A capture with varying numbers failed, one without may not.
  bool give_up() {
    const bool had_some = !places_.empty();
    places_.clear();
    given_up_ = true;
    return had_some;
  }
  const std::set<std::string>* get() const { return places_.empty() ? nullptr : &places_; }

 private:
  std::set<std::string> places_;
  bool given_up_ = false;
};

}  // namespace oxy::driver
