// Relations without what changes nothing.
#pragma once

#include "sym/relations/condition.h"

namespace oxy::sym {

// An equivalent condition:
// - factors that all terms share are dropped where their ranges tell that they are not zero or are positive,
// and get
//   relations of their own where they do not: `a*b == 0` is `a == 0 or b == 0`;
// - `1 <= a*b` is `1 <= a and 1 <= b` if neither is negative, and `n < n*m` is `1 <= n and 2 <= m`;
// - minima and maxima are taken apart: `max(a, b) == a` is `b <= a`, `max(a, b) <= c` is `a <= c and b <= c`.
Condition reduced(const Condition& condition);

}  // namespace oxy::sym
