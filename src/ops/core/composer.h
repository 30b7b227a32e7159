// Building nodes in decompositions: each call's metadata come from the operator's own shape rule.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "ops/core/registry.h"

namespace oxy::ops {

class Composer {
 public:
  // Appends to `graph` the nodes that replace `node`.
  Composer(graph::Graph& graph, const graph::Node& node) : graph_(graph), node_(node) {}

  const graph::Node& node() const { return node_; }
  const graph::Argument& arg(size_t i) const { return node_.args.at(i); }
  bool is_none(size_t i) const { return std::holds_alternative<graph::None>(arg(i)); }
  bool flag(size_t i) const { return std::get<bool>(arg(i)); }
  // Metadata of a tensor argument, a value, or result number i of the node.
  TensorMeta meta(const graph::Argument& tensor) const;
  // The node that computes a tensor argument; null for inputs and constants.
  const graph::Node* producer(const graph::Argument& tensor) const;
  TensorMeta result(size_t i = 0) const { return graph_.meta(node_.outputs.at(i)); }
  // Of an operator with an `output_mask`: whether the call has this result. In the place of one that it has
  // not, a composition returns kNoValue.
  bool has_result(size_t i) const { return node_.outputs.at(i) != graph::kNoValue; }
  std::vector<graph::ValueRef> without_left_out(std::vector<graph::ValueRef> results) const;
  int64_t integer(size_t i) const;  // Unsupported if symbolic
  double real(size_t i) const;      // integers and bool included

  // Calls an operator with these arguments in schema order; those left out take their defaults. Unsupported
  // if the operator has no shape rule or the rule does not cover the arguments.
  graph::ValueRef call(std::string_view name, std::vector<graph::Argument> args);
  graph::ValueRef call(const OperatorSchema* op, std::vector<graph::Argument> args);
  std::vector<graph::ValueRef> call_many(std::string_view name, std::vector<graph::Argument> args);
  std::vector<graph::ValueRef> call_many(const OperatorSchema* op, std::vector<graph::Argument> args);
  // With results of these metadata, where a shape rule would have to ask again what the recording has
  // decided.
  std::vector<graph::ValueRef> call_for(std::string_view name, std::vector<graph::Argument> args,
                                        std::vector<TensorMeta> results);
  graph::ValueRef convert(graph::ValueRef value, DType dtype);
  // The value divided by a number of elements, which may be known at run time alone.
  graph::ValueRef divide(graph::ValueRef value, const Expr& count);

 private:
  std::vector<graph::ValueRef> append(const OperatorSchema* op, std::vector<graph::Argument> args,
                                      std::vector<TensorMeta> results);

  graph::Graph& graph_;
  graph::Node node_;  // a copy: appending moves the graph's own
};

// A decomposition from a function that may give up: if it throws Unsupported, returns nothing, or gives
// results of other metadata than the node's (eager's strides must stay), the nodes it has added are taken
// back and the node is kept as it is.
using Composition = std::vector<graph::ValueRef> (*)(Composer&);
Decomposition composed(Composition composition);

}  // namespace oxy::ops
