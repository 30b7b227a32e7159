// What a function or region has learned of the floats that it reads: those that changed are inputs of the
// graph the next time (eval/varying_float.h).
#pragma once

#include <set>
#include <string>

namespace oxy::driver {

class VaryingPlaces {
 public:
  // `place`: that of a float that was another one at a later call; empty: none.
  void learn(std::string place) {
    if (!place.empty() && !given_up_) places_.insert(std::move(place));
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
