#include "backend/cuda/print/expression_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace oxy::backend::cuda {

using sym::Expr;
using sym::Kind;

std::string parenthesized(const ExpressionText& e) {
  return e.is_simple ? e.text : "(" + e.text + ")";
}

namespace {

ExpressionText sum_text(const Expr& e, const ExpressionContext& context) {
  ExpressionText result{"", kNoDims, false};
  for (const Expr& operand : e.operands()) {
    const ExpressionText part = expression_text(operand, context);
    result.dims |= part.dims;
    if (result.text.empty())
      result.text = part.text;
    else if (part.text[0] == '-')
      result.text += " - " + part.text.substr(1);
    else
      result.text += " + " + part.text;
  }
  return result;
}

ExpressionText product_text(const Expr& e, const ExpressionContext& context) {
  ExpressionText result{"", kNoDims, false};
  bool is_negated = false;
  for (const Expr& operand : e.operands()) {  // a constant comes first
    if (operand == Expr(-1)) {
      is_negated = true;
      continue;
    }
    const ExpressionText part = expression_text(operand, context);
    result.dims |= part.dims;
    result.text += result.text.empty() ? operand.is_constant() ? part.text : parenthesized(part)
                                       : " * " + parenthesized(part);
  }
  if (is_negated) result.text = "-" + result.text;
  return result;
}

}  // namespace

ExpressionText expression_text(const Expr& e, const ExpressionContext& context) {
  switch (e.kind()) {
    case Kind::Constant:
      return {fmt::format("{}", e.constant()), kNoDims, e.constant() >= 0};
    case Kind::Variable:
      return context.variable(e);
    case Kind::Sum:
      return sum_text(e, context);
    case Kind::Product:
      return product_text(e, context);
    case Kind::FloorDiv:
    case Kind::Mod: {
      const ExpressionText a = expression_text(e.operands()[0], context);
      const ExpressionText b = expression_text(e.operands()[1], context);
      const bool divides = e.kind() == Kind::FloorDiv;
      ExpressionText result{"", a.dims | b.dims, false};
      if (e.operands()[0].range().low >= 0 && e.operands()[1].range().low > 0) {
        result.text = fmt::format("{} {} {}", parenthesized(a), divides ? "//" : "%", parenthesized(b));
      } else {
        const char* function = divides ? "floor_divide" : "floor_modulo";
        context.needs.helpers.insert(function);
        result.text = fmt::format("{}({}, {})", function, a.text, b.text);
      }
      return context.named(result);
    }
    case Kind::Min:
    case Kind::Max: {
      const ExpressionText a = expression_text(e.operands()[0], context);
      const ExpressionText b = expression_text(e.operands()[1], context);
      const char* function = e.kind() == Kind::Min ? "tl.minimum" : "tl.maximum";
      return {fmt::format("{}({}, {})", function, a.text, b.text), a.dims | b.dims, true};
    }
  }
  throw InternalError("an expression of unknown kind");
}

bool fits_int32(const Expr& e) {
  constexpr int64_t kMost = (int64_t{1} << 31) - (int64_t{1} << 20);
  const sym::Range range = e.range();
  if (range.low < -kMost || range.high > kMost) return false;
  if (e.is_constant() || e.kind() == Kind::Variable) return true;
  return std::ranges::all_of(e.operands(), fits_int32);
}

}  // namespace oxy::backend::cuda
