// What is known of each variable by itself: its range, its remainder, or its value in terms of others.
//
// Equalities replace variables: the first of those that are equal stands for all. A variable x of which
// `x % m == r` is known is written `m*k + r` while something is proved; then the rules of expr.h alone know
// what m divides. The k is a variable of this class's own. *Proof form* is an expression over variables that
// nothing replaces and over such k, each with the range that is known.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "sym/expr.h"
#include "sym/multiples.h"

namespace oxy::sym {

// x % modulus == residue, 0 <= residue < modulus.
struct Congruence {
  int64_t modulus = 1;
  int64_t residue = 0;
  friend bool operator==(const Congruence&, const Congruence&) = default;
};

// When a variable gets its value. What is known early is not written in terms of what is known late.
enum class Availability : uint8_t { Early, Late };

class VariableFacts {
 public:
  // Once a variable; its range is taken as known.
  void declare(const Expr& variable, Availability availability, bool is_size);
  bool is_declared(int64_t id) const { return known_.contains(id); }
  bool is_late(int64_t id) const;
  void set_size(int64_t id) { known_.at(id).is_size = true; }

  // Over the variables that nothing replaces, each with the range that is known.
  Expr replaced(const Expr& e) const;
  Expr proof_form(const Expr& e) const;
  // The same, of sizes above one. A size that is known to be 0 or 1 keeps what is known.
  Expr proof_form_of_large_sizes(const Expr& e) const;
  // What has this proof form, as an expression over variables.
  Expr from_proof_form(const Expr& e) const;
  // The variable that stands in proof forms for the variable, or as which it is written there.
  int64_t variable_of(int64_t proof_variable) const;
  // The early variables without a value that are known to be multiples of more than 1, by id.
  std::vector<Multiple> multiples() const;

  // These say whether anything new became known. What is known afterwards may be contradictory: an empty
  // range.
  bool narrow(int64_t proof_variable, Range range);
  bool set_remainder(int64_t proof_variable, Congruence congruence);
  // The value of a proof variable, itself in proof form and free of it. Precondition: `value` has no variable
  // that is late if the variable itself is not.
  void replace(int64_t proof_variable, const Expr& value);
  bool is_contradictory() const { return is_contradictory_; }

  // What was known of a variable before a value replaced it, and has to hold of the value.
  struct Replaced {
    Expr value;
    Range range;
    Congruence congruence;
  };
  std::vector<Replaced> take_replaced() { return std::exchange(replaced_, {}); }

 private:
  struct Known {
    Expr variable;  // with `range`
    Range range;
    Congruence congruence;
    std::optional<Expr> value;  // over variables without one
    bool is_late = false;
    bool is_size = false;
    Expr proof_form;
  };

  Known& of_proof_variable(int64_t proof_variable) { return known_.at(variable_of(proof_variable)); }
  bool narrow_variable(Known& known, Range range);
  void refresh(Known& known);
  static Expr written_with(const Known& known, Range range);

  std::map<int64_t, Known> known_;
  std::vector<Replaced> replaced_;
  bool is_contradictory_ = false;
};

// The least and the greatest integer of the range with that remainder; empty if there is none.
Range narrowed(Range range, Congruence congruence);

}  // namespace oxy::sym
