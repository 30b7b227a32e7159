#include "graph/sizes.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

namespace oxy::graph {

namespace {

bool is_symbol(const Expr& e) {
  return !e.is_constant();
}

}  // namespace

TensorMeta map_expressions(TensorMeta meta, const MapExpression& fn) {
  TensorMeta mapped = meta;
  for (Expr& size : mapped.sizes) size = fn(size);
  for (Expr& stride : mapped.strides) stride = fn(stride);
  mapped.storage_offset = fn(mapped.storage_offset);
  if (mapped.strides == meta.strides || is_non_overlapping_and_dense(mapped)) return mapped;
  const std::optional<std::vector<size_t>> order = dense_order(meta);
  Expr stride = 1;
  for (size_t i = 0; order && i < order->size(); ++i) {
    mapped.strides[(*order)[i]] = stride;
    stride = stride * sym::max(mapped.sizes[(*order)[i]], 1);
  }
  return mapped;
}

std::vector<Argument> map_expressions(std::vector<Argument> arguments, const MapExpression& fn) {
  for (Argument& argument : arguments) {
    if (auto* integer = std::get_if<Expr>(&argument)) *integer = fn(*integer);
    if (auto* list = std::get_if<std::vector<Expr>>(&argument))
      for (Expr& integer : *list) integer = fn(integer);
  }
  return arguments;
}

void map_expressions(Graph& graph, const MapExpression& fn) {
  for (Value& value : graph.values) value.meta = map_expressions(*value.meta, fn);
  for (Node& node : graph.nodes) node.args = map_expressions(std::move(node.args), fn);
}

std::vector<Expr> symbols_of(const Graph& graph) {
  std::map<int64_t, Expr> found;
  const auto look = [&](const Expr& e) {
    if (is_symbol(e))
      for (const Expr& variable : sym::variables(e)) found.emplace(variable.variable_id(), variable);
  };
  const auto look_at_all = [&](const std::vector<Expr>& list) { std::ranges::for_each(list, look); };
  for (const Value& value : graph.values) {
    look_at_all(value.meta->sizes);
    look_at_all(value.meta->strides);
    look(value.meta->storage_offset);
  }
  for (const Node& node : graph.nodes)
    for (const Argument& argument : node.args) {
      if (const auto* integer = std::get_if<Expr>(&argument)) look(*integer);
      if (const auto* list = std::get_if<std::vector<Expr>>(&argument)) look_at_all(*list);
    }
  std::vector<Expr> symbols;
  for (auto& [id, variable] : found) symbols.push_back(std::move(variable));
  return symbols;
}

std::vector<sym::Multiple> write_as_multiples(Graph& graph, std::span<const sym::Multiple> multiples) {
  std::vector<sym::Multiple> written;
  const std::vector<Expr> symbols = symbols_of(graph);
  std::ranges::copy_if(multiples, std::back_inserter(written), [&](const sym::Multiple& multiple) {
    return std::ranges::binary_search(symbols, multiple.symbol.variable_id(), {}, &Expr::variable_id);
  });
  if (written.empty()) return written;
  const auto product_of = [&](int64_t id) -> std::optional<Expr> {
    for (const sym::Multiple& multiple : written)
      if (multiple.symbol.variable_id() == id) return multiple.factor * sym::quotient_variable(multiple);
    return std::nullopt;
  };
  map_expressions(graph, [&](const Expr& e) { return sym::substitute(e, product_of); });
  return written;
}

bool has_symbols(const TensorMeta& meta) {
  return std::ranges::any_of(meta.sizes, is_symbol) || std::ranges::any_of(meta.strides, is_symbol) ||
         is_symbol(meta.storage_offset);
}

bool has_symbols(const Argument& argument) {
  const auto* list = std::get_if<std::vector<Expr>>(&argument);
  const auto* integer = std::get_if<Expr>(&argument);
  return (list != nullptr && std::ranges::any_of(*list, is_symbol)) ||
         (integer != nullptr && is_symbol(*integer));
}

}  // namespace oxy::graph
