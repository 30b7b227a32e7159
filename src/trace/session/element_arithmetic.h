// Calculating with elements of tensors as expressions, as operators calculate with numbers (ops::Counting).
// Where a result depends on which of two expressions is larger, the recording relies on the answer.
#pragma once

#include <cstdint>
#include <optional>

#include "aten/dtype.h"
#include "ops/core/traits.h"
#include "sym/expr.h"
#include "torch_api/symbolic_node.h"

namespace oxy::trace {

// An element: top / bottom. Quotients occur in tensors of floats alone.
struct Element {
  Expr top;
  int64_t bottom = 1;  // positive
  int roundings = 0;   // how often eager has rounded on the way
};

// Elements are usually smaller than this, and what is calculated of small ones fits in 64 bits.
constexpr int64_t kSmallElement = int64_t{1} << 19;

// Whether -limit < e < limit.
bool lies_within(const Expr& e, int64_t limit, torch_api::Symbols& symbols);

// Whether eager's result of this type is the element itself, or so near that rounding up or down gives the
// same whole number.
bool fits(const Element& element, DType dtype, torch_api::Symbols& symbols);

// These return nothing where the result is no quotient of whole numbers, or may be none.
std::optional<Element> sum(const Element& a, const Element& b, const Expr& factor);  // a + factor * b
std::optional<Element> product(const Element& a, const Element& b);
std::optional<Element> quotient(const Element& a, const Element& b);
std::optional<Element> converted(const Element& a, DType dtype, torch_api::Symbols& symbols);
// The largest whole number not above `a`, and the smallest one not below it.
Element floor(const Element& a);
Element ceil(const Element& a);
// FloorDivide, Remainder, Maximum or Minimum of whole numbers. `truncates`: a quotient is rounded towards
// zero.
std::optional<Element> whole_result(ops::Counting counting, const Element& a, const Element& b,
                                    bool truncates, torch_api::Symbols& symbols);
// 1 or 0: whether Less, LessEqual, Greater, GreaterEqual, Equal or NotEqual holds of whole numbers.
std::optional<Element> comparison(ops::Counting counting, const Element& a, const Element& b,
                                  torch_api::Symbols& symbols);
// One step of Sum, Product, LargestOf or SmallestOf.
Expr reduction_step(ops::Counting counting, const Expr& a, const Expr& b);

}  // namespace oxy::trace
