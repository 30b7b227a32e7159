#include "backend/shared/reductions/tuned_splits.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>
#include <vector>

namespace oxy::backend {

namespace {

using loop::ReductionKind;

std::string_view noun(ReductionKind kind) {
  switch (kind) {
    case ReductionKind::Sum:
      return "sums";
    case ReductionKind::Prod:
      return "products";
    case ReductionKind::Max:
      return "maxima";
    case ReductionKind::Min:
      return "minima";
    case ReductionKind::Welford:
      return "variances";
    case ReductionKind::OnlineSoftmax:
      return "sums of exponentials";
    default:
      return "reductions";
  }
}

std::string name_of(const Divided& divided, PartCount count) {
  if (std::holds_alternative<RowsShape>(divided))
    return count == 0 ? "apart from the rows" : fmt::format("by {} programs", count);
  return count == 1 ? "as a whole" : fmt::format("in {} parts", count);
}

}  // namespace

std::string to_string(const Divided& divided) {
  if (const auto* rows = std::get_if<RowsShape>(&divided))
    return fmt::format("{} sums over {} rows that are reduced", rows->length, rows->count);
  const auto& shape = std::get<ReductionShape>(divided);
  return fmt::format("{} {} of {} elements{}", shape.results, noun(shape.kind), shape.elements,
                     shape.is_row ? " side by side" : "");
}

std::map<Divided, PartCount> tuned_splits(const Backend& backend, const DivideProgram& divide) {
  const DividedProgram chosen = divide({});
  std::vector<DividedProgram> others;
  std::vector<WaysToTry> trials;
  for (const auto& [divided, choice] : chosen.splits.made) {
    WaysToTry& trial = trials.emplace_back(to_string(divided));
    trial.ways.push_back({name_of(divided, choice.taken), chosen.drafts});
    for (const PartCount count : choice.others) {
      others.push_back(divide({.tuned = {{divided, count}}, .made = {}}));
      trial.ways.push_back({name_of(divided, count), others.back().drafts});
    }
  }
  std::map<Divided, PartCount> tuned;
  const std::vector<size_t> fastest = backend.fastest(trials);
  size_t k = 0;
  for (const auto& [divided, choice] : chosen.splits.made)
    if (const size_t way = fastest.at(k++); way > 0) tuned.emplace(divided, choice.others.at(way - 1));
  return tuned;
}

}  // namespace oxy::backend
