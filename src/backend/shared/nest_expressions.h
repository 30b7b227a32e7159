// Offsets in loops that are not made yet: their variables, and what costs are estimated by.
#pragma once

#include <cstdint>
#include <optional>

#include "sym/expr.h"
#include "sym/hints.h"

namespace oxy::backend {

using sym::estimate;
using sym::Expr;

// The variable of the loop at depth `position`, outermost 0, counted through outer, loops and reduction:
// equal positions and extents give the same variable, so that offsets in equal loops compare equal.
Expr nest_variable(int64_t position, const Expr& extent);
int64_t variable_position(const Expr& nest_variable);
bool is_bound_variable(int64_t id);  // of a BindIndex
bool has_bound_variable(const Expr& offset);
bool is_nest_variable(int64_t id);  // of a loop or bound: everything but sizes

// The multiple of the loop variable `v` in e: 0 if absent, nothing if e is not linear in it.
std::optional<Expr> stride_of(const Expr& e, const Expr& v);

// e with the variables of the first `depth` loops at 0, and with those of the others at 0.
Expr without_outer(const Expr& e, size_t depth);
Expr without_inner(const Expr& e, size_t depth);

}  // namespace oxy::backend
