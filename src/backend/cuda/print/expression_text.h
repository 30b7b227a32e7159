// Index expressions as Triton text.
#pragma once

#include <functional>
#include <string>

#include "backend/cuda/print/helpers.h"
#include "backend/cuda/print/value.h"
#include "sym/expr.h"

namespace oxy::backend::cuda {

struct ExpressionText {
  std::string text;
  unsigned dims = kNoDims;
  bool is_simple = true;  // needs no parentheses as an operand
};

struct ExpressionContext {
  std::function<ExpressionText(const sym::Expr& variable)> variable;
  // Gives a quotient or remainder a name of its own.
  std::function<ExpressionText(const ExpressionText&)> named;
  Needs& needs;
};

// The text as an operand of a product or comparison.
std::string parenthesized(const ExpressionText& e);

ExpressionText expression_text(const sym::Expr& e, const ExpressionContext& context);

// Whether e and all that it is computed from fit in 32 bits, with a block's length to spare.
bool fits_int32(const sym::Expr& e);

}  // namespace oxy::backend::cuda
