// Comparisons of indices without divisions.
#pragma once

#include "backend/nests/loop_nest.h"

namespace oxy::backend::cuda {

// A comparison of i // n with a number becomes one of i with n times that: as a mask it is then known to be
// the same for whole vectors, whatever n is, and the quotient is mostly needed for nothing else.
void compare_undivided(Phase& phase);

}  // namespace oxy::backend::cuda
