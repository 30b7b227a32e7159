// Sizes and ints that the user has given one name: they are made of one number.
#pragma once

#include "eval/sizes/dimension.h"
#include "eval/state/interpreter.h"

namespace oxy::eval {

// Guards that `size`, a symbol whose value at this call is `value`, follows from the number of its name as
// the others of that name do. Precondition: it has a name. Throws Interrupted with a RuntimeError if it does
// not.
void relate(Interpreter& interpreter, const Dimension& said, const sym::Expr& size, int64_t value);

}  // namespace oxy::eval
