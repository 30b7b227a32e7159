// How long an expression is.
#pragma once

#include <cstddef>

#include "sym/expr.h"

namespace oxy::sym {

inline size_t node_count(const Expr& e) {
  size_t count = 1;
  for (const Expr& operand : e.operands()) count += node_count(operand);
  return count;
}

}  // namespace oxy::sym
