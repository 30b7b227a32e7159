#include "sym/environment/guard_program.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace oxy::sym {

GuardProgram::GuardProgram(const ShapeEnvironment& environment) {
  std::vector<int64_t> ids;
  std::vector<Condition> conditions;
  for (const Demand& guard : environment.guards()) {
    std::vector<size_t>& used = inputs_of_.emplace_back();
    for (const Expr& v : variables(guard.condition)) {
      const auto position = std::ranges::find(ids, v.variable_id());
      used.push_back(static_cast<size_t>(position - ids.begin()));
      if (position != ids.end()) continue;
      const Symbol& symbol = environment.symbol(SymbolId{v.variable_id()});
      ids.push_back(v.variable_id());
      inputs_.push_back(symbol.id);
      described_.push_back({symbol.origin.name, symbol.hint.value_or(0)});
    }
    const std::string lines = fmt::format("{}", fmt::join(guard.asked_at, ", "));
    texts_.push_back(environment.text(guard.condition) + (lines.empty() ? "" : " (" + lines + ")"));
    conditions.push_back(guard.condition);
  }
  program_ = IntegerProgram(ids, conditions);
}

std::string GuardProgram::explain(const RunOutcome& outcome, std::span<const int64_t> values) const {
  if (outcome.status == RunStatus::Holds || outcome.condition < 0) return "";
  const size_t guard = static_cast<size_t>(outcome.condition);
  std::string what = texts_[guard];
  if (outcome.status == RunStatus::Overflow) what += ": needs more than 64 bits";
  if (outcome.status == RunStatus::ZeroDivision) what += ": divides by zero";
  const char* separator = ": ";
  for (const size_t i : inputs_of_[guard]) {
    const Input& input = described_[i];
    what += input.value == values[i]
                ? fmt::format("{}{} is {}", separator, input.name, values[i])
                : fmt::format("{}{} was {}, is {}", separator, input.name, input.value, values[i]);
    separator = ", ";
  }
  return what;
}

}  // namespace oxy::sym
