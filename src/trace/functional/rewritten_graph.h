// The graph that functionalisation makes, while it is made.
#pragma once

#include <optional>
#include <vector>

#include "graph/graph.h"

namespace oxy::trace {

struct RewrittenGraph {
  graph::Graph graph;
  graph::LocationId location;  // of the nodes that are emitted
  // Torch's at the recording: shape rules ask for it.
  DType default_dtype = DType::Float32;

  const TensorMeta& meta(graph::ValueId id) const { return graph.meta(id); }
  // Append a node, and give its results.
  graph::ValueId emit(const OperatorSchema* op, std::vector<graph::Argument> args, TensorMeta meta);
  std::vector<graph::ValueId> emit_all(const OperatorSchema* op, std::vector<graph::Argument> args,
                                       std::vector<TensorMeta> metas);
  graph::ValueId clone(graph::ValueId value) { return graph::append_copy(graph, value, location); }
  // What the operator's shape rule says of a call on values of this graph; nothing if it has none that covers
  // the call.
  std::optional<std::vector<TensorMeta>> rule_metadata(const OperatorSchema& op,
                                                       const std::vector<graph::Argument>& args) const;
  // The value whose storage `value` shares.
  graph::ValueId storage_of(graph::ValueId value) const;
  // Whether it is an input or a constant.
  bool is_given(graph::ValueId value) const { return graph.values[value].node == graph::kNoNode; }
};

// The argument of the alias set; kNoValue if it is no single tensor.
graph::ValueId aliased_argument(const graph::Node& node, int alias_set);
// The metadata of a tensor with a storage of its own.
TensorMeta fresh(TensorMeta meta);

}  // namespace oxy::trace
