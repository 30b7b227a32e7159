#include "sym/multiples.h"

#include <fmt/format.h>

namespace oxy::sym {

namespace {

constexpr int64_t kQuotientVariables = int64_t{1} << 39;  // above the ids of sizes, below those of loops

}  // namespace

Expr quotient_variable(const Multiple& multiple) {
  const auto& [symbol, factor] = multiple;
  return Expr::variable(fmt::format("{}_by_{}", symbol.variable_name(), factor),
                        kQuotientVariables + symbol.variable_id(), floordiv(symbol, factor).range());
}

}  // namespace oxy::sym
