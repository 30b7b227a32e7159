// The variables of loop programs. Ids lie far above those of sizes, and the same position has the same id in
// every computation, so that equal computations are equal as data.
#pragma once

#include <cstdint>

#include "sym/expr.h"

namespace oxy::loop {

using sym::Expr;

inline constexpr int64_t kLoopVariables = int64_t{1} << 40;
inline constexpr int64_t kReductionVariables = kLoopVariables + (1 << 20);
inline constexpr int64_t kBoundVariables = kLoopVariables + (2 << 20);  // bound by BindIndex
inline constexpr int64_t kViewVariables =
    kLoopVariables + (3 << 20);  // the index of a view, before it is used

// A variable over [0, extent - 1]: "i0" for a loop, "r0" a reduction loop, "t0" bound, "d0" of a view.
Expr index_variable(int64_t family, int64_t position, const Expr& extent);
inline Expr loop_variable(int64_t position, const Expr& extent) {
  return index_variable(kLoopVariables, position, extent);
}
inline Expr reduction_variable(int64_t position, const Expr& extent) {
  return index_variable(kReductionVariables, position, extent);
}

}  // namespace oxy::loop
