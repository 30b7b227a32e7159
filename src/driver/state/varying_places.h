// The places whose numbers have changed between calls of a site. The next capture takes them for varying
// numbers (eval/numbers/varying_number.h).
#pragma once

#include <set>
#include <string>
#include <vector>

#include "guards/guard_set.h"

namespace oxy::driver {

class VaryingPlaces {
 public:
  // Adds the places whose constant is a number, unless give_up() was called.
  void learn(const std::vector<guards::ChangedConstant>& constants) {
    for (const guards::ChangedConstant& changed : constants)
      if (changed.is_number && !given_up_) places_.insert(changed.place);
  }
  // Forgets all places for good: a capture without varying numbers came further. True if there were any.
  bool give_up() {
    const bool had_some = !places_.empty();
    places_.clear();
    given_up_ = true;
    return had_some;
  }
  // The places, as GuardSet::describe() names them; null if there are none.
  const std::set<std::string>* get() const { return places_.empty() ? nullptr : &places_; }

 private:
  std::set<std::string> places_;
  bool given_up_ = false;
};

}  // namespace oxy::driver
