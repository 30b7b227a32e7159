// What follows for symbols from expressions of theirs being large enough: a loop of `s // 2` iterations that
// has one tells that s is at least 2.
#pragma once

#include <cstdint>
#include <map>

#include "sym/expr.h"

namespace oxy::sym {

class LowerBounds {
 public:
  // Notes that `e` is at least `least`, which is positive. What follows from that for no symbol alone is left
  // out.
  void note(const Expr& e, int64_t least);
  // `e` with the ranges of its symbols narrowed, and simplified by that. `max(s, 1)` becomes `s`.
  Expr applied(const Expr& e) const;
  // The symbol with its range narrowed; null if nothing is known of it.
  const Expr* find(int64_t id) const;
  bool empty() const { return symbols_.empty(); }

 private:
  std::map<int64_t, Expr> symbols_;  // by id
};

}  // namespace oxy::sym
