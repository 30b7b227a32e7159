#include "backend/nests/element_text.h"

#include <cmath>
#include <limits>
#include <variant>

namespace oxy::backend {

using loop::Op;

std::string_view infix(Op op) {
  switch (op) {
    case Op::Add:
      return "+";
    case Op::Sub:
      return "-";
    case Op::Mul:
      return "*";
    case Op::BitAnd:
      return "&";
    case Op::BitOr:
      return "|";
    case Op::BitXor:
      return "^";
    case Op::Eq:
      return "==";
    case Op::Ne:
      return "!=";
    case Op::Lt:
      return "<";
    case Op::Le:
      return "<=";
    case Op::Gt:
      return ">";
    case Op::Ge:
      return ">=";
    default:
      return "";
  }
}

int64_t integer_of(const loop::Scalar& value) {
  return std::visit(
      [](auto x) -> int64_t {
        if constexpr (std::is_same_v<decltype(x), double>)
          if (!(std::abs(x) < 9.2e18))
            return x > 0 ? std::numeric_limits<int64_t>::max() : std::numeric_limits<int64_t>::min();
        return static_cast<int64_t>(x);
      },
      value.value);
}

}  // namespace oxy::backend
