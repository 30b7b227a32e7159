#include "sym/facts/always_holds.h"

#include "sym/facts/facts.h"

namespace oxy::sym {

bool always_holds(const Condition& condition) {
  return Facts().answer(condition) == Answer::True;
}

}  // namespace oxy::sym
