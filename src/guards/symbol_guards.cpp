#include "guards/symbol_guards.h"

namespace oxy::guards {

SymbolGuards::SymbolGuards(std::vector<SymbolSource> sources, const sym::ShapeEnvironment& environment)
    : sources_(std::move(sources)),
      values_(sources_.size()),
      program_(environment),
      inputs_(program_.inputs().size()),
      work_(program_.program().slots()) {}

bool SymbolGuards::holds() {
  for (size_t i = 0; i < inputs_.size(); ++i) inputs_[i] = values_[static_cast<size_t>(program_.inputs()[i])];
  outcome_ = program_.program().run(inputs_, work_);
  return outcome_.status == sym::RunStatus::Holds;
}

std::string SymbolGuards::explain() const {
  return outcome_.status == sym::RunStatus::Holds ? "" : program_.explain(outcome_, inputs_);
}

}  // namespace oxy::guards
