#include "backend/cpu/print/expression_text.h"

#include <fmt/format.h>

#include "base/error.h"

namespace oxy::backend::cpu {

using sym::Expr;
using sym::Kind;

std::string expression_text(const Expr& e, const std::function<std::string(const Expr&)>& name,
                            const std::function<void(const char*)>& uses) {
  auto text = [&](const Expr& operand) { return expression_text(operand, name, uses); };
  auto joined = [&](std::string_view separator) {
    std::string out;
    for (const Expr& operand : e.operands()) {
      std::string part = text(operand);
      if (!out.empty() && separator == " + " && part.size() > 1 && part[0] == '-')
        out += " - " + part.substr(1);
      else
        out += (out.empty() ? "" : std::string(separator)) + part;
    }
    return out;
  };
  switch (e.kind()) {
    case Kind::Constant:
      return fmt::format("{}", e.constant());
    case Kind::Variable:
      return name(e);
    case Kind::Sum:
      return "(" + joined(" + ") + ")";
    case Kind::Product:
      return joined(" * ");
    case Kind::FloorDiv:
    case Kind::Mod: {
      const Expr& a = e.operands()[0];
      const Expr& b = e.operands()[1];
      bool division = e.kind() == Kind::FloorDiv;
      if (std::string known = name(e); !known.empty()) return known;
      if (!division && !b.is_constant() && a.kind() == Kind::Sum) {
        uses("near_modulo");
        return fmt::format("near_modulo({}, {})", text(a), text(b));
      }
      if (a.range().low >= 0 && b.range().low > 0) {
        std::string divisor = b.kind() == Kind::Product ? "(" + text(b) + ")" : text(b);
        return fmt::format("({} {} {})", text(a), division ? "/" : "%", divisor);
      }
      const char* function = division ? "floor_divide" : "floor_modulo";
      uses(function);
      return fmt::format("{}({}, {})", function, text(a), text(b));
    }
    case Kind::Min:
    case Kind::Max: {
      const char* function = e.kind() == Kind::Min ? "least" : "greatest";
      uses(function);
      return fmt::format("{}({}, {})", function, text(e.operands()[0]), text(e.operands()[1]));
    }
  }
  throw InternalError("an expression of unknown kind");
}

}  // namespace oxy::backend::cpu
