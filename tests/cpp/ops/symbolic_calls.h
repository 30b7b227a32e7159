// Calls with symbols in the place of numbers, for tests that compare the two.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "base/error.h"
#include "graph/sizes.h"
#include "ops/core/registry.h"
#include "sym/environment/shape_environment.h"

namespace oxy::testing {

class Questions final : public ops::SizeQuestions {
 public:
  explicit Questions(sym::ShapeEnvironment& environment) : environment_(environment) {}
  bool decide(const sym::Condition& question) const override { return environment_.decide(question, {}); }
  std::optional<bool> generally(const sym::Condition& question) const override {
    return sym::certain(environment_.answer(question, sym::Assume::LargeSizes));
  }
  std::optional<bool> at_hand(const sym::Condition& question) const override {
    return environment_.hint(question);
  }
  int64_t specialise(const Expr& e) const override { return environment_.specialise(e, {}); }

 private:
  sym::ShapeEnvironment& environment_;
};

inline Expr new_symbol(sym::ShapeEnvironment& environment, sym::SymbolKind kind, int64_t value) {
  sym::Origin origin;
  origin.name = fmt::format("s{}", environment.symbols().size());
  return environment.admit(kind, std::move(origin), value);
}

// The tensor with a symbol for each size from `least` on, laid out in the same order; itself if it has gaps
// or overlaps.
inline TensorMeta with_symbols(sym::ShapeEnvironment& environment, const TensorMeta& meta,
                               int64_t least = 0) {
  std::vector<size_t> order(meta.sizes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(
      order, [&](size_t a, size_t b) { return meta.strides[a].constant() > meta.strides[b].constant(); });
  TensorMeta result = meta;
  std::vector<Expr> ordered;
  for (const size_t d : order) ordered.push_back(meta.sizes[d]);
  const std::vector<Expr> dense = contiguous_strides(ordered);
  for (size_t i = 0; i < order.size(); ++i)
    if (!(dense[i] == meta.strides[order[i]])) return meta;
  for (Expr& size : ordered)
    if (size.constant() >= least) size = new_symbol(environment, sym::SymbolKind::Size, size.constant());
  const std::vector<Expr> strides = contiguous_strides(ordered);
  for (size_t i = 0; i < order.size(); ++i) {
    result.sizes[order[i]] = ordered[i];
    result.strides[order[i]] = strides[i];
  }
  return result;
}

using Values = std::vector<int64_t>;  // by symbol

inline Values at_hand(const sym::ShapeEnvironment& environment) {
  Values values;
  for (const sym::Symbol& symbol : environment.symbols()) values.push_back(*symbol.hint);
  return values;
}

inline Expr with_values(const Expr& e, const Values& values) {
  return sym::evaluate(e, [&](int64_t id) { return std::optional(values.at(static_cast<size_t>(id))); });
}

inline TensorMeta with_values(TensorMeta meta, const Values& values) {
  return graph::map_expressions(std::move(meta), [&](const Expr& e) { return Expr(with_values(e, values)); });
}

// Whether a call with these values is served, as the guards' program tells.
inline bool hold(const std::vector<sym::Demand>& guards, const Values& values) {
  const auto value = [&](int64_t id) { return std::optional(values.at(static_cast<size_t>(id))); };
  try {
    return std::ranges::all_of(guards, [&](const sym::Demand& d) { return evaluate(d.condition, value); });
  } catch (const sym::ArithmeticError&) {
    return false;
  }
}

}  // namespace oxy::testing
