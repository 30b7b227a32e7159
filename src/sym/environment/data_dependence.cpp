#include "sym/environment/data_dependence.h"

#include <fmt/format.h>

namespace oxy::sym {

namespace {

std::string description(const Symbol& symbol, const std::string& question, const std::string& asked_at) {
  const std::string& made_at = symbol.origin.made_at;
  return fmt::format("{} depends on {}{}, which is not known before the graph runs{}", question,
                     symbol.origin.name, made_at.empty() ? "" : " of " + made_at,
                     asked_at.empty() ? "" : ", and is asked at " + asked_at);
}

}  // namespace

DataDependence::DataDependence(const Symbol& symbol, const std::string& question, std::string asked_at,
                               std::string check)
    : Unsupported(description(symbol, question, asked_at), std::move(check)),
      symbol_(symbol.id),
      asked_at_(std::move(asked_at)) {}

}  // namespace oxy::sym
