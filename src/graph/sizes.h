// The integers of a graph: sizes, strides and offsets of values, and integer arguments of nodes.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "graph/graph.h"
#include "sym/multiples.h"

namespace oxy::graph {

// Gives what takes the place of an expression: numbers in the place of symbols, or what has become known of
// them.
using MapExpression = std::function<Expr(const Expr&)>;

// The strides of a dense tensor stay products of its sizes, by which it is known to be dense.
TensorMeta map_expressions(TensorMeta meta, const MapExpression& fn);
std::vector<Argument> map_expressions(std::vector<Argument> arguments, const MapExpression& fn);
void map_expressions(Graph& graph, const MapExpression& fn);

// The variables in a graph's expressions, by id.
std::vector<Expr> symbols_of(const Graph& graph);

// Writes each symbol of the graph that is among `multiples` as a multiple of a variable of its own
// (sym::quotient_variable). Gives those that it wrote.
std::vector<sym::Multiple> write_as_multiples(Graph& graph, std::span<const sym::Multiple> multiples);

// Whether some expression is no number.
bool has_symbols(const TensorMeta& meta);
bool has_symbols(const Argument& argument);

}  // namespace oxy::graph
