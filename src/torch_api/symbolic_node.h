// Symbolic integers and truth values as PyTorch's C++ sees them: c10::SymInt and c10::SymBool over our shape
// environment.
//
// PyTorch's composite operators, views and autograd formulas compute with SymInt and ask questions of
// SymBool. The ways of asking keep their meaning:
//   guard_bool                                expect(): the values at hand answer, with a guard; of data the
//                                             likely answer, with an assertion
//   guard_int                                 specialise(): the value at hand, with a guard
//   guard_or_false, guard_or_true,            decide_general(): no guard where the general answer is that of
//   the guard_size_oblivious                      values at hand. What data decides is false, or true
//   statically_known_true                     answer(): what is certain
//   expect_true                               check()
// A float is a number, or a factor times a power of a quotient of integers (`2.0 / (n - 1)`, `1 / sqrt(n)`):
// what else becomes of such a float specialises the integers, with a guard.
//
// Failures are exceptions that pass through PyTorch: sym::DataDependence and Unsupported. Nodes keep their
// environment alive. They belong to one thread.
#pragma once

#include <c10/core/SymBool.h>
#include <c10/core/SymFloat.h>
#include <c10/core/SymInt.h>
#include <c10/core/SymNodeImpl.h>

#include <memory>
#include <optional>
#include <span>

#include "sym/environment/shape_environment.h"

namespace oxy::torch_api {

// The symbols of one capture.
struct Symbols {
  sym::ShapeEnvironment environment;
  sym::Locate where;                // the user's line of now
  bool needs_exact_ones = false;    // ops::SizeQuestions::need_exact_ones() was called
  bool is_general = false;          // guard_or_false() and guard_or_true() leave the values at hand aside
  bool answered_generally = false;  // they gave an answer that is not that of the values at hand

  // Which of two layouts there is: the answer of the values at hand, as a guard that contradicts no mark.
  // Nothing if there are none.
  std::optional<bool> decide_layout(const sym::Condition& question);
  // Where the format of a tensor follows from strides of these dimensions if all are of size 1: whether they
  // are becomes a guard. If so, they are numbers from the beginning of the next recording.
  void decide_ones(std::span<const sym::Expr> sizes);
  // For where strides of dimensions of size 1 have to be eager's: which sizes are 1 becomes a guard, and
  // these are numbers from the beginning of the next recording.
  void fix_ones();
};
using SymbolsPointer = std::shared_ptr<Symbols>;

// A constant is a plain number.
c10::SymInt to_torch(const SymbolsPointer& symbols, const sym::Expr& e);
c10::SymBool to_torch(const SymbolsPointer& symbols, const sym::Condition& condition);

// Unsupported for symbolic integers that are not ours.
sym::Expr expression_of(const c10::SymInt& value);
sym::Condition condition_of(const c10::SymBool& value);
// factor * (numerator / denominator) ** exponent
struct FloatOfSizes {
  c10::SymInt numerator;
  c10::SymInt denominator;
  double factor = 1;
  double exponent = 1;
};
// What the float is computed of. Nothing: it is a number.
std::optional<FloatOfSizes> float_of_sizes(const c10::SymFloat& value);

}  // namespace oxy::torch_api
