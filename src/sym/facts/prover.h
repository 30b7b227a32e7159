// What follows from inequalities that are known.
//
// All expressions are in proof form (variable_facts.h). A proof of `e >= 0` subtracts multiples of known
// non-negative expressions from e, each so that a term goes that may be negative, until intervals alone show
// that the rest is not negative. This is Fourier and Motzkin's elimination, with products of variables taken
// for variables, and with a limit on the steps: what is not found within it is unknown.
#pragma once

#include "sym/expr.h"

namespace oxy::sym {

struct Inequalities {
  std::vector<Expr> nonnegative;  // each is >= 0
  std::vector<Expr> nonzero;      // each is != 0, in the canonical form of a Relation
  std::vector<Expr> zero;         // each is == 0, in the canonical form of a Relation
};

// True only if e >= 0 follows.
bool follows_nonnegative(const Inequalities& known, const Expr& e);

}  // namespace oxy::sym
