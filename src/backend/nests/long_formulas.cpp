#include "backend/nests/long_formulas.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "sym/facts/node_count.h"

namespace oxy::backend {

namespace {

using sym::Kind;

constexpr int64_t kFormulaVariables = int64_t{1} << 37;  // above sizes, below arguments and loop variables
constexpr size_t kTermsOfALongFormula = 24;

class Formulas {
 public:
  explicit Formulas(LoopNest& nest) : nest_(nest) {}

  void name_all() {
    name_in(nest_.outer);
    for (Phase& phase : nest_.phases) {
      name_in(phase.loops);
      name_in(phase.reduction);
      for_each_expression(phase, [this](Expr& e) { e = named(e); });
    }
    for (Array& array : nest_.arrays)
      if (array.kind == ArrayKind::Scratch) array.scratch_offset = named(array.scratch_offset);
    nest_.symbols.insert(nest_.symbols.end(), symbols_.begin(), symbols_.end());
  }

 private:
  void name_in(std::vector<LoopVariable>& loops) {
    for (LoopVariable& loop : loops) loop.extent = named(loop.extent);
  }

  static bool is_long(const Expr& e) {
    const Kind kind = e.kind();
    if (kind != Kind::FloorDiv && kind != Kind::Mod && kind != Kind::Min && kind != Kind::Max) return false;
    return sym::node_count(e) > kTermsOfALongFormula &&
           std::ranges::none_of(sym::variables(e),
                                [](const Expr& v) { return is_nest_variable(v.variable_id()); });
  }

  Expr named(const Expr& e) {
    if (e.is_constant() || e.kind() == Kind::Variable) return e;
    if (const auto found = named_.find(e); found != named_.end()) return found->second;
    const Expr result = is_long(e) ? symbol_for(e) : with_named_operands(e);
    named_.emplace(e, result);
    return result;
  }

  Expr symbol_for(const Expr& formula) {
    const auto number = static_cast<int64_t>(symbols_.size());
    const Expr variable =
        Expr::variable(fmt::format("f{}", number), kFormulaVariables + number, formula.range());
    symbols_.push_back({variable, formula});
    return variable;
  }

  Expr with_named_operands(const Expr& e) {
    std::vector<Expr> operands;
    for (const Expr& operand : e.operands()) operands.push_back(named(operand));
    if (std::ranges::equal(operands, e.operands())) return e;
    switch (e.kind()) {
      case Kind::Sum: {
        Expr sum = 0;
        for (const Expr& term : operands) sum = sum + term;
        return sum;
      }
      case Kind::Product:
        return sym::product(operands);
      case Kind::FloorDiv:
        return sym::floordiv(operands[0], operands[1]);
      case Kind::Mod:
        return sym::mod(operands[0], operands[1]);
      case Kind::Min:
        return sym::min(operands[0], operands[1]);
      case Kind::Max:
        return sym::max(operands[0], operands[1]);
      default:
        return e;
    }
  }

  LoopNest& nest_;
  std::vector<Symbol> symbols_;
  std::unordered_map<Expr, Expr> named_;
};

}  // namespace

void name_long_formulas(LoopNest& nest) {
  Formulas(nest).name_all();
}

Expr with_formulas(const LoopNest& nest, const Expr& e) {
  return sym::substitute(e, [&](int64_t id) -> std::optional<Expr> {
    const auto found =
        std::ranges::find(nest.symbols, id, [](const Symbol& s) { return s.variable.variable_id(); });
    return found == nest.symbols.end() || found->value == found->variable ? std::nullopt
                                                                          : std::optional(found->value);
  });
}

}  // namespace oxy::backend
