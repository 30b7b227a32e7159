// What a function or region has learned of the floats that it reads: those that changed are inputs of the
// graph the next time (eval/varying_float.h).
#pragma once

#include <optional>
#include <set>
#include <string>

#include "guards/guard_set.h"

namespace oxy::driver {

class VaryingPlaces {
 public:
  void learn(const std::optional<guards::ChangedConstant>& changed) {
    if (changed && changed->is_float && !given_up_) places_.insert(changed->place);
  }
  // A capture with varying floats failed, one without may not.
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
