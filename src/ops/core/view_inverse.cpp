#include "ops/core/view_inverse.h"

#include <utility>

#include "base/error.h"
#include "ops/core/registry.h"

namespace oxy::ops {

graph::ValueId ViewWrite::add(const OperatorSchema* op, std::vector<graph::Argument> args) {
  const graph::NodeId node = graph.add_node(op, std::move(args), {std::move(result)}, view.location);
  return graph.nodes[node].outputs[0];
}

int64_t ViewWrite::dimension(size_t i) const {
  const int64_t dim = std::get<Expr>(arg(i)).constant();
  return dim < 0 ? dim + base_meta().rank() : dim;
}

ViewInverse::Kind inverse_of(const graph::Graph& graph, const graph::Node& view) {
  const Traits& traits = traits_of(*view.op);
  if (traits.movement == Movement::Expand) {
    const TensorMeta& base = graph.meta(std::get<graph::ValueRef>(view.args.at(0)).id);
    if (!(element_count(base) == element_count(graph.meta(view.outputs.at(0)))))
      return ViewInverse::Kind::None;
  }
  return traits.inverse.kind;
}

graph::ValueId write_through(ViewWrite write) {
  const ViewInverse& inverse = traits_of(*write.view.op).inverse;
  check(inverse.kind != ViewInverse::Kind::None, "a write through a view without an inverse");
  return inverse.kind == ViewInverse::Kind::Identity ? write.written : inverse.write(write);
}

}  // namespace oxy::ops
