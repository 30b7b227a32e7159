// How shape rules ask about sizes that are no numbers.
#pragma once

#include <cstdint>
#include <optional>

#include "sym/relations/condition.h"

namespace oxy::ops {

// An answer is right for all calls that the compilation serves: what is not certain becomes a guard.
// Of what depends on data the likely answer is taken, and checked by the run (sym/environment).
class SizeQuestions {
 public:
  SizeQuestions() = default;
  SizeQuestions(const SizeQuestions&) = delete;
  SizeQuestions& operator=(const SizeQuestions&) = delete;
  virtual ~SizeQuestions() = default;

  virtual bool decide(const sym::Condition& question) const = 0;
  // Whether a size or a number of elements is zero.
  virtual bool is_empty(const sym::Expr& count) const { return decide(sym::equal(count, 0)); }
  // Of what has to hold, or the operator refuses the call: as decide(), but what data decide holds, and is
  // checked while the graph runs.
  virtual bool require(const sym::Condition& condition) const { return decide(condition); }
  // Which of two layouts a result has: as decide(), but whatever was promised of sizes, both are right.
  virtual bool decide_layout(const sym::Condition& question) const { return decide(question); }
  // A layout depends on strides of dimensions of size 1, which are eager's only where the size was a number
  // from the beginning: what has become a number since has to be one then.
  virtual void need_exact_ones() const {}
  // What is certain of sizes other than 0 and 1: for where the result is right for these as well. No guard.
  virtual std::optional<bool> generally(const sym::Condition& question) const = 0;
  // The answer of the values at hand: for choosing what to ask, and for nothing else. Nothing if there are
  // none.
  virtual std::optional<bool> at_hand(const sym::Condition& question) const = 0;
  // The number itself, guarded: for what is another program with each number.
  virtual int64_t specialise(const sym::Expr& e) const = 0;
  // A size that data decide, from 0 to `at_most`, for exactly one of the call's results. Unsupported where
  // sizes cannot depend on data.
  virtual sym::Expr computed_size(const sym::Expr& at_most) const;
};

}  // namespace oxy::ops
