#include "trace/session/values_at_hand.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "graph/sizes.h"

namespace oxy::trace {

namespace {

Expr at_hand(const torch_api::Symbols* symbols, const Expr& e) {
  if (e.is_constant()) return e;
  check(symbols != nullptr, "a symbolic size in a recording without symbols");
  const auto value = symbols->environment.hint(e);
  if (!value)
    throw Unsupported(fmt::format("{} is not known before the graph runs", symbols->environment.text(e)));
  return *value;
}

}  // namespace

bool is_at_hand(const torch_api::Symbols* symbols, const TensorMeta& meta) {
  bool is_known = true;
  graph::map_expressions(meta, [&](const Expr& e) {
    is_known = is_known && (e.is_constant() || (symbols != nullptr && symbols->environment.hint(e)));
    return e;
  });
  return is_known;
}

bool is_at_hand(const torch_api::Symbols* symbols, const std::vector<graph::Argument>& arguments,
                const std::function<const TensorMeta&(graph::ValueId)>& meta_of) {
  bool is_known = true;
  graph::map_expressions(arguments, [&](const Expr& e) {
    is_known = is_known && (e.is_constant() || (symbols != nullptr && symbols->environment.hint(e)));
    return e;
  });
  const auto look = [&](graph::ValueId id) {
    if (id != graph::kNoValue) is_known = is_known && is_at_hand(symbols, meta_of(id));
  };
  for (const graph::Argument& argument : arguments) {
    if (const auto* ref = std::get_if<graph::ValueRef>(&argument)) look(ref->id);
    if (const auto* list = std::get_if<graph::ValueList>(&argument)) std::ranges::for_each(list->ids, look);
  }
  return is_known;
}

TensorMeta at_hand(const torch_api::Symbols* symbols, TensorMeta meta) {
  return graph::map_expressions(std::move(meta), [&](const Expr& e) { return at_hand(symbols, e); });
}

std::vector<graph::Argument> at_hand(const torch_api::Symbols* symbols,
                                     std::span<const graph::Argument> arguments) {
  return graph::map_expressions(std::vector(arguments.begin(), arguments.end()),
                                [&](const Expr& e) { return at_hand(symbols, e); });
}

c10::IValue at_hand(const torch_api::Symbols* symbols, const c10::IValue& value) {
  if (symbols == nullptr) return value;
  if (value.isSymInt()) return at_hand(symbols, torch_api::expression_of(value.toSymInt())).constant();
  if (!value.isSymIntList()) return value;
  std::vector<int64_t> numbers;
  for (const c10::SymInt& size : value.toSymIntVector())
    numbers.push_back(at_hand(symbols, torch_api::expression_of(size)).constant());
  return numbers;
}

}  // namespace oxy::trace
