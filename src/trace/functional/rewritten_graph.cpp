#include "trace/functional/rewritten_graph.h"

#include "base/error.h"
#include "ops/core/registry.h"

namespace oxy::trace {

using graph::Argument;
using graph::kNoValue;
using graph::Node;
using graph::ValueId;
using graph::ValueRef;

ValueId RewrittenGraph::emit(const OperatorSchema* op, std::vector<Argument> args, TensorMeta meta) {
  return emit_all(op, std::move(args), {std::move(meta)})[0];
}

std::vector<ValueId> RewrittenGraph::emit_all(const OperatorSchema* op, std::vector<Argument> args,
                                              std::vector<TensorMeta> metas) {
  const graph::NodeId node = graph.add_node(op, std::move(args), std::move(metas), location);
  return graph.nodes[node].outputs;
}

std::optional<std::vector<TensorMeta>> RewrittenGraph::rule_metadata(
    const OperatorSchema& op, const std::vector<Argument>& args) const {
  const ops::ShapeRule& rule = ops::entry_of(op).shape;
  if (!rule) return std::nullopt;
  const std::function<const TensorMeta&(ValueId)> meta_of = [this](ValueId id) -> const TensorMeta& {
    return meta(id);
  };
  try {
    return rule(ops::ShapeContext(op, args, meta_of, default_dtype));
  } catch (const Unsupported&) {
    return std::nullopt;
  }
}

ValueId RewrittenGraph::storage_of(ValueId value) const {
  for (;;) {
    const graph::NodeId producer = graph.values[value].node;
    if (producer == graph::kNoNode) return value;
    const Node& node = graph.nodes[producer];
    if (!node.op->is_view()) return value;
    value = aliased_argument(node, node.op->returns[0].alias_set);
  }
}

ValueId aliased_argument(const Node& node, int alias_set) {
  for (size_t i = 0; i < node.args.size(); ++i)
    if (node.op->arguments[i].alias_set == alias_set && std::holds_alternative<ValueRef>(node.args[i]))
      return std::get<ValueRef>(node.args[i]).id;
  return kNoValue;
}

TensorMeta fresh(TensorMeta meta) {
  meta.storage_offset = 0;
  return meta;
}

}  // namespace oxy::trace
