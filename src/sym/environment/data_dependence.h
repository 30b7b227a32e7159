// A question that only the data could answer.
#pragma once

#include <string>

#include "sym/environment/symbol.h"

namespace oxy::sym {

// Thrown where a program's course depends on a symbol without a value. The reason names the symbol and the
// user's line, the hint a `torch._check` that decides the question.
class DataDependence : public Unsupported {
 public:
  DataDependence(const Symbol& symbol, const std::string& question, std::string asked_at, std::string check);
  SymbolId symbol() const { return symbol_; }
  const std::string& asked_at() const { return asked_at_; }

 private:
  SymbolId symbol_;
  std::string asked_at_;
};

}  // namespace oxy::sym
