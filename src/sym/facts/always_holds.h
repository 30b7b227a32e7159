// Conditions that need no facts.
#pragma once

#include "sym/relations/condition.h"

namespace oxy::sym {

// Whether the condition is known to hold for all values that its variables may have. False says nothing.
bool always_holds(const Condition& condition);

}  // namespace oxy::sym
