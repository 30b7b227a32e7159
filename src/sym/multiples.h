// Symbols that are known to be multiples of a number, written as such: then expressions know by themselves
// what divides them.
#pragma once

#include <cstdint>

#include "sym/expr.h"

namespace oxy::sym {

struct Multiple {
  Expr symbol;
  int64_t factor = 1;  // at least 2
};

// The variable that stands for symbol // factor. Two of one symbol are one variable.
Expr quotient_variable(const Multiple& multiple);

}  // namespace oxy::sym
