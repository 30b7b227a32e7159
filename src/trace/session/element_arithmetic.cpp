#include "trace/session/element_arithmetic.h"

#include <algorithm>

#include "graph/sizes.h"
#include "runtime/values/convert.h"
#include "trace/session/data_reads.h"

namespace oxy::trace {

namespace {

using ops::Counting;
using MaybeElement = std::optional<Element>;

bool decide(const sym::Condition& condition, torch_api::Symbols& symbols) {
  return symbols.environment.decide(condition, symbols.where);
}

// The integers that the type holds, as far as expressions reach.
sym::Range range_of(DType dtype) {
  if (dtype == DType::Bool) return {0, 1};
  if (dtype == DType::Int64) return {sym::kMinInt + 1, sym::kMaxInt - 1};
  return integer_range(runtime::dtype_to_torch(dtype)).value_or(sym::Range{});
}

bool are_whole(const Element& a, const Element& b) {
  return a.bottom == 1 && b.bottom == 1;
}

sym::Condition relation(Counting counting, const Expr& a, const Expr& b) {
  switch (counting) {
    case Counting::Less:
      return sym::less(a, b);
    case Counting::LessEqual:
      return sym::less_equal(a, b);
    case Counting::Greater:
      return sym::less(b, a);
    case Counting::GreaterEqual:
      return sym::less_equal(b, a);
    case Counting::Equal:
      return sym::equal(a, b);
    default:
      return sym::not_equal(a, b);
  }
}

}  // namespace

bool lies_within(const Expr& e, int64_t limit, torch_api::Symbols& symbols) {
  return decide(sym::less(-limit, e), symbols) && decide(sym::less(e, limit), symbols);
}

// The quotient is 1 / bottom away from the next whole number at least, or is one. Each rounding errs by less
// than 1 / (16 * bottom) where floats have 4 bits more than the numbers.
bool fits(const Element& element, DType dtype, torch_api::Symbols& symbols) {
  if (dtype == DType::Float32 || dtype == DType::Float64) {
    const int64_t limit = int64_t{1} << (dtype == DType::Float32 ? 20 : 48);
    return element.roundings <= 8 && element.bottom < limit && lies_within(element.top, limit, symbols);
  }
  const sym::Range range = range_of(dtype);
  return element.bottom == 1 && decide(sym::less_equal(range.low, element.top), symbols) &&
         decide(sym::less_equal(element.top, range.high), symbols);
}

// Quotients of other denominators would lie nearer to whole numbers.
MaybeElement sum(const Element& a, const Element& b, const Expr& factor) {
  if (a.bottom != 1 && b.bottom != 1 && a.bottom != b.bottom) return std::nullopt;
  const int64_t bottom = std::max(a.bottom, b.bottom);
  const Expr first = a.top * (bottom / a.bottom), second = b.top * (bottom / b.bottom);
  return Element{first + second * factor, bottom, a.roundings + b.roundings + 2};
}

MaybeElement product(const Element& a, const Element& b) {
  if (a.bottom != 1 && b.bottom != 1) return std::nullopt;
  return Element{a.top * b.top, a.bottom * b.bottom, a.roundings + b.roundings + 1};
}

MaybeElement quotient(const Element& a, const Element& b) {
  const auto divisor = b.top.as_constant();
  if (!are_whole(a, b) || !divisor || *divisor < 1) return std::nullopt;
  // Kernels may multiply by the reciprocal.
  return Element{a.top, *divisor, a.roundings + b.roundings + 2};
}

MaybeElement converted(const Element& a, DType dtype, torch_api::Symbols& symbols) {
  if (dtype == DType::Bool) return std::nullopt;
  if (a.bottom == 1 || !is_integral(dtype)) return a;
  // Conversion rounds towards zero.
  if (!decide(sym::less_equal(0, a.top), symbols)) return std::nullopt;
  return floor(a);
}

Element floor(const Element& a) {
  return {sym::floordiv(a.top, a.bottom)};
}

Element ceil(const Element& a) {
  return {-sym::floordiv(-a.top, a.bottom)};
}

MaybeElement whole_result(Counting counting, const Element& a, const Element& b, bool truncates,
                          torch_api::Symbols& symbols) {
  if (!are_whole(a, b)) return std::nullopt;
  const int roundings = a.roundings + b.roundings;
  if (counting == Counting::Maximum) return Element{sym::max(a.top, b.top), 1, roundings};
  if (counting == Counting::Minimum) return Element{sym::min(a.top, b.top), 1, roundings};
  if (!decide(sym::not_equal(b.top, 0), symbols)) return std::nullopt;
  const auto are_positive = [&] {
    return decide(sym::less_equal(0, a.top), symbols) && decide(sym::less(0, b.top), symbols);
  };
  if (truncates && !are_positive()) return std::nullopt;
  const bool is_remainder = counting == Counting::Remainder;
  return Element{is_remainder ? sym::mod(a.top, b.top) : sym::floordiv(a.top, b.top), 1, roundings};
}

MaybeElement comparison(Counting counting, const Element& a, const Element& b, torch_api::Symbols& symbols) {
  if (!are_whole(a, b)) return std::nullopt;
  return Element{decide(relation(counting, a.top, b.top), symbols) ? 1 : 0};
}

Expr reduction_step(Counting counting, const Expr& a, const Expr& b) {
  switch (counting) {
    case Counting::Sum:
      return a + b;
    case Counting::Product:
      return a * b;
    case Counting::LargestOf:
      return sym::max(a, b);
    default:
      return sym::min(a, b);
  }
}

}  // namespace oxy::trace
