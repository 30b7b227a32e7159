// What follows from inequalities that are known.
//
// A proof of `e >= 0` subtracts multiples of known non-negative expressions from e, each so that a term goes
// that may be negative, until intervals alone show that the rest is not negative. This is Fourier and
// Motzkin's elimination, with a limit on the steps: what is not found within it is unknown. *Atoms* are what
// sums are linear in: variables, and products, quotients and the like, whose insides count for their ranges
// only.
#pragma once

#include <unordered_map>

#include "sym/expr.h"

namespace oxy::sym {

// constant + the sum of coefficient * atom.
struct LinearForm {
  struct Term {
    int32_t atom;
    int64_t coefficient;
  };
  std::vector<Term> terms;  // by atom, none of coefficient 0
  int64_t constant = 0;
};

class Inequalities {
 public:
  void clear() { *this = {}; }
  bool empty() const { return facts_.empty(); }
  // The expression, in proof form (variable_facts.h), is never negative. Large numbers are left out.
  void add(const Expr& nonnegative);
  // True only if e >= 0 follows, in the ranges that its variables have.
  bool prove_nonnegative(const Expr& e) const;

 private:
  friend class Proof;
  struct Atom {
    Range range;
    std::vector<int32_t> facts_with_positive;  // the facts that have it with a positive coefficient
    std::vector<int32_t> facts_with_negative;
  };

  std::unordered_map<Expr, int32_t> atom_ids_;
  std::vector<Atom> atoms_;
  std::vector<LinearForm> facts_;
};

}  // namespace oxy::sym
