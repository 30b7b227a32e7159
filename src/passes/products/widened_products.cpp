#include "passes/products/widened_products.h"

#include <ranges>
#include <vector>

#include "aten/operators.h"
#include "passes/rewriting/rewrite.h"

namespace oxy::passes {
namespace {

// A conversion to float32 on the same device that keeps the order of the elements in memory.
bool is_widening(const Graph& source, const Node& node) {
  if (node.op != op::to_copy()) return false;
  const TensorMeta &from = source.meta(tensor_argument(node, 0)), &to = source.meta(node.outputs.front());
  return to.dtype == DType::Float32 && to.device == from.device && to.strides == from.strides;
}

// Whether the value is an mm that `widens` allows, or a view of all elements of one, and nothing else reads
// it.
bool is_product_alone(const Graph& source, ValueId value, const IdVector<ValueId, NodeId>& readers,
                      const WidensProducts& widens) {
  for (;;) {
    const Node* const node = producer(source, value);
    if (node == nullptr || readers[value] == graph::kNoNode) return false;
    const TensorMeta& meta = source.meta(value);
    if (node->op == op::mm()) return widens(meta.dtype) && is_contiguous(meta);
    const ValueId base = tensor_argument(*node, 0);
    if (!node->op->is_view() || node->outputs.size() != 1 ||
        element_count(source.meta(base)) != element_count(meta))
      return false;
    value = base;
  }
}

}  // namespace

Graph widen_products(const Graph& source, const WidensProducts& widens) {
  if (!widens) return source;
  const auto readers = only_readers(source);
  IdVector<ValueId, bool> is_result(source.values.size());
  for (const graph::Output& output : source.outputs) is_result[output.value] = true;
  return rewrite(source, [&](const Site& site) -> std::optional<std::vector<ValueId>> {
    if (!is_widening(source, site.original) || !is_result[site.original.outputs.front()] ||
        !is_product_alone(source, tensor_argument(site.original, 0), readers, widens))
      return std::nullopt;
    std::vector<Node> nodes;  // copies, as emitting moves what the graph holds; the product is the last
    do {
      const ValueId read = tensor_argument(nodes.empty() ? site.node : nodes.back(), 0);
      nodes.push_back(*producer(site.graph, read));
    } while (nodes.back().op != op::mm());
    ValueId value = graph::kNoValue;
    for (const Node& node : nodes | std::views::reverse) {
      TensorMeta meta = site.graph.meta(node.outputs.front());
      meta.dtype = DType::Float32;
      const bool is_product = node.op == op::mm();
      std::vector<Argument> args = node.args;
      if (is_product)
        args.emplace_back(DType::Float32);
      else
        args.front() = ValueRef{value};
      value = site.emit(is_product ? op::mm_dtype() : node.op, std::move(args), std::move(meta));
    }
    return {{value}};
  });
}

}  // namespace oxy::passes
