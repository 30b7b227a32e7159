#include "guards/symbol_guards.h"

#include <fmt/format.h>

namespace oxy::guards {

SymbolGuards::SymbolGuards(std::vector<SymbolSource> sources, const sym::ShapeEnvironment& environment)
    : sources_(std::move(sources)),
      values_(sources_.size()),
      program_(environment),
      inputs_(program_.inputs().size()),
      work_(program_.program().slots()) {
  for (const sym::Symbol& symbol : environment.symbols()) {
    if (!(environment.simplify(symbol.variable) == symbol.variable)) continue;
    const std::string name = symbol.variable.variable_name();
    const sym::Range range = environment.range(symbol.variable);
    std::string bounds;
    if (range.low > sym::range_of(symbol.kind).low) bounds = fmt::format("{} <= ", range.low);
    if (range.high < sym::kMaxInt) bounds = fmt::format("{}{} <= {}", bounds, name, range.high);
    if (range.high >= sym::kMaxInt && !bounds.empty()) bounds += name;
    const bool is_of_data = symbol.kind == sym::SymbolKind::Data;
    described_.push_back({name, is_of_data ? "data at " + symbol.origin.made_at : symbol.origin.name,
                          symbol.hint, std::move(bounds)});
  }
}

std::vector<std::optional<int64_t>> SymbolGuards::known_values() const {
  std::vector<std::optional<int64_t>> result(values_.begin(), values_.end());
  for (size_t i = 0; i < result.size(); ++i)
    if (!sources_[i].source.is_valid()) result[i].reset();
  return result;
}

bool SymbolGuards::holds() {
  for (size_t i = 0; i < inputs_.size(); ++i) inputs_[i] = values_[static_cast<size_t>(program_.inputs()[i])];
  outcome_ = program_.program().run(inputs_, work_);
  return outcome_.status == sym::RunStatus::Holds;
}

std::string SymbolGuards::explain() const {
  return outcome_.status == sym::RunStatus::Holds ? "" : program_.explain(outcome_, inputs_);
}

}  // namespace oxy::guards
