#include "graph/sizes.h"

#include <algorithm>

namespace oxy::graph {

namespace {

void for_each(TensorMeta& meta, const std::function<void(Expr&)>& fn) {
  for (Expr& size : meta.sizes) fn(size);
  for (Expr& stride : meta.strides) fn(stride);
  fn(meta.storage_offset);
}

void for_each(std::vector<Argument>& arguments, const std::function<void(Expr&)>& fn) {
  for (Argument& argument : arguments) {
    if (auto* integer = std::get_if<Expr>(&argument)) fn(*integer);
    if (auto* list = std::get_if<std::vector<Expr>>(&argument))
      for (Expr& integer : *list) fn(integer);
  }
}

std::function<void(Expr&)> replacing(const SymbolValue& value) {
  return [&value](Expr& e) {
    if (!e.is_constant()) e = sym::evaluate(e, value);
  };
}

bool is_symbol(const Expr& e) {
  return !e.is_constant();
}

}  // namespace

TensorMeta with_numbers(TensorMeta meta, const SymbolValue& value) {
  for_each(meta, replacing(value));
  return meta;
}

std::vector<Argument> with_numbers(std::vector<Argument> arguments, const SymbolValue& value) {
  for_each(arguments, replacing(value));
  return arguments;
}

bool has_symbols(const TensorMeta& meta) {
  return std::ranges::any_of(meta.sizes, is_symbol) || std::ranges::any_of(meta.strides, is_symbol) ||
         is_symbol(meta.storage_offset);
}

bool has_symbols(const std::vector<Argument>& arguments) {
  return std::ranges::any_of(arguments, [](const Argument& argument) {
    const auto* list = std::get_if<std::vector<Expr>>(&argument);
    const auto* integer = std::get_if<Expr>(&argument);
    return (list && std::ranges::any_of(*list, is_symbol)) || (integer && is_symbol(*integer));
  });
}

void map_expressions(Graph& graph, const std::function<Expr(const Expr&)>& fn) {
  const auto replace = [&](Expr& e) { e = fn(e); };
  for (Value& value : graph.values) for_each(value.meta, replace);
  for (Node& node : graph.nodes) for_each(node.args, replace);
}

bool has_symbols(const Graph& graph) {
  return std::ranges::any_of(graph.values, [](const Value& value) { return has_symbols(value.meta); }) ||
         std::ranges::any_of(graph.nodes, [](const Node& node) { return has_symbols(node.args); });
}

}  // namespace oxy::graph
