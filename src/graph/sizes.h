// The integers of a graph: sizes, strides and offsets of values, and integer arguments of nodes.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "graph/graph.h"

namespace oxy::graph {

// Gives the value of a variable by its id.
using SymbolValue = std::function<std::optional<int64_t>(int64_t id)>;

// With numbers in place of symbols. InternalError if one has no value.
TensorMeta with_numbers(TensorMeta meta, const SymbolValue& value);
std::vector<Argument> with_numbers(std::vector<Argument> arguments, const SymbolValue& value);
bool has_symbols(const TensorMeta& meta);
bool has_symbols(const std::vector<Argument>& arguments);

// Replaces each: as by what has become known of its symbols.
void map_expressions(Graph& graph, const std::function<Expr(const Expr&)>& fn);
// Whether one has a variable.
bool has_symbols(const Graph& graph);

}  // namespace oxy::graph
