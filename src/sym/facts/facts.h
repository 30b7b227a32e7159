// Facts: conditions that hold, and what follows from them.
//
// Answers are certain: True and False are right for every assignment that satisfies the facts, and Unknown is
// always allowed. Nothing is guessed, and no question changes what is known. Facts that are equalities
// replace variables, others narrow ranges and give remainders (variable_facts.h), the rest is kept as
// inequalities (prover.h). Copies are values.
#pragma once

#include <cstdint>
#include <vector>

#include "sym/facts/answer.h"
#include "sym/facts/prover.h"
#include "sym/facts/variable_facts.h"
#include "sym/multiples.h"
#include "sym/relations/condition.h"

namespace oxy::sym {

// What a question may take for granted besides.
enum class Assume : uint8_t {
  Nothing,
  LargeSizes,  // sizes are neither 0 nor 1, except those that are known to be
};

class Facts {
 public:
  // A variable that facts and questions may be about. Others are declared early, and no sizes, by the first
  // fact.
  void declare(const Expr& variable, Availability availability = Availability::Early, bool is_size = false);

  // A declared variable is a size.
  void set_size(int64_t id) { variables_.set_size(id); }

  // From now on the condition holds. False if it is then clear that no assignment is left.
  bool add(const Condition& condition);
  bool is_contradictory() const { return variables_.is_contradictory() || is_contradictory_; }

  Answer answer(const Condition& condition, Assume assume = Assume::Nothing) const;
  // Of the same value, or simply `e`. Its variables are those that nothing replaces, with the known ranges.
  Expr simplify(const Expr& e) const;
  Condition simplify(const Condition& condition) const;
  Range range(const Expr& e) const { return simplify(e).range(); }
  // The variables that are known early, by id, and to be multiples of more than 1. Nothing replaces them.
  std::vector<Multiple> multiples() const { return variables_.multiples(); }

 private:
  struct Fact {
    Condition condition;
    bool is_absorbed = false;  // variables_ has all of it
  };

  // Expressions whose values follow from facts, in proof form.
  struct KnownValue {
    Expr expression;
    int64_t value;
  };

  void settle();
  // These say whether anything new became known of a variable.
  bool learn(Fact& fact);
  bool learn(const Condition& proof_form, bool& is_absorbed);
  bool learn_zero(const Expr& value, bool& is_absorbed);
  bool learn_quotient(const Expr& division, int64_t quotient, bool& is_absorbed);
  bool learn_nonzero(const Expr& value, bool& is_absorbed);
  bool learn_nonnegative(const Expr& value, bool& is_absorbed);
  bool solve(const Expr& value);
  // What was known of a variable holds of the value that replaces it.
  void pass_on(const VariableFacts::Replaced& old);
  void collect_inequalities();
  Expr rewritten(const Expr& proof_form) const;
  Condition proof_form(const Condition& condition, Assume assume) const;
  Answer answer_proof_form(const Condition& condition) const;
  Answer answer(const Relation& relation) const;

  VariableFacts variables_;
  std::vector<Fact> facts_;
  Inequalities inequalities_;
  std::vector<Expr> zero_;     // values of relations, in proof form
  std::vector<Expr> nonzero_;  // likewise
  std::vector<KnownValue> values_;
  std::vector<Condition> alternatives_;  // in proof form
  bool is_contradictory_ = false;
};

}  // namespace oxy::sym
