#include "trace/recording/values_at_hand.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace oxy::trace {

namespace {

bool is_number(const Expr& e) {
  return e.is_constant();
}

Expr at_hand(const torch_api::Symbols* symbols, const Expr& e) {
  if (e.is_constant()) return e;
  check(symbols != nullptr, "a symbolic size in a recording without symbols");
  const auto value = symbols->environment.hint(e);
  if (!value)
    throw Unsupported(fmt::format("{} is not known before the graph runs", symbols->environment.text(e)));
  return *value;
}

}  // namespace

bool is_symbolic(const TensorMeta& meta) {
  return !(std::ranges::all_of(meta.sizes, is_number) && std::ranges::all_of(meta.strides, is_number) &&
           meta.storage_offset.is_constant());
}

bool is_symbolic(const graph::Argument& argument) {
  if (const auto* e = std::get_if<Expr>(&argument)) return !e->is_constant();
  const auto* list = std::get_if<std::vector<Expr>>(&argument);
  return list != nullptr && !std::ranges::all_of(*list, is_number);
}

TensorMeta at_hand(const torch_api::Symbols* symbols, TensorMeta meta) {
  for (Expr& size : meta.sizes) size = at_hand(symbols, size);
  for (Expr& stride : meta.strides) stride = at_hand(symbols, stride);
  meta.storage_offset = at_hand(symbols, meta.storage_offset);
  return meta;
}

std::vector<graph::Argument> at_hand(const torch_api::Symbols* symbols,
                                     std::span<const graph::Argument> arguments) {
  std::vector<graph::Argument> result(arguments.begin(), arguments.end());
  for (graph::Argument& argument : result) {
    if (auto* e = std::get_if<Expr>(&argument)) *e = at_hand(symbols, *e);
    if (auto* list = std::get_if<std::vector<Expr>>(&argument))
      for (Expr& e : *list) e = at_hand(symbols, e);
  }
  return result;
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
