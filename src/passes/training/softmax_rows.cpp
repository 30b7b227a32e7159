#include "passes/training/softmax_rows.h"

#include "aten/dtype.h"
#include "aten/operators.h"
#include "base/error.h"
#include "ops/core/composer.h"
#include "passes/rewriting/rewrite.h"
#include "passes/training/many_bytes.h"

namespace oxy::passes {
namespace {

bool moves_elements(const Node& node) {
  const ops::Movement movement = ops::traits_of(*node.op).movement;
  return movement != ops::Movement::None && movement != ops::Movement::Convert &&
         movement != ops::Movement::Replace;
}

// By value, whether the backward pass reads what the forward pass reads: what a kernel computes has more
// digits there than in memory, and may be computed again of what was saved. What only moves elements has
// theirs.
IdVector<ValueId, bool> values_in_memory(const Graph& graph) {
  IdVector<ValueId, bool> result(graph.values.size(), true);
  for (const Node& node : graph.nodes) {
    if (!ops::entry_of(*node.op).lower) continue;
    bool is_in_memory = moves_elements(node);
    graph::for_each_input(node, [&](ValueId id) { is_in_memory = is_in_memory && result[id]; });
    for (const ValueId id : node.outputs)
      if (id != graph::kNoValue) result[id] = is_in_memory;
  }
  return result;
}

bool reshapes(const Node& node) {
  return ops::traits_of(*node.op).movement == ops::Movement::Reshape;
}

// The value that contiguous reshapes were made of; kNoValue where one of them is not contiguous.
ValueId before_reshapes(const Graph& graph, ValueId id) {
  for (;;) {
    if (!is_contiguous(graph.meta(id))) return graph::kNoValue;
    const Node* const made = producer(graph, id);
    if (made == nullptr || !reshapes(*made)) return id;
    id = tensor_argument(*made, 0);
  }
}

// What the caller has anyway, as it is or in other dimensions.
IdVector<ValueId, bool> returned_values(const Graph& graph) {
  IdVector<ValueId, bool> result(graph.values.size(), false);
  for (const graph::Output& output : graph.outputs)
    if (const ValueId id = before_reshapes(graph, output.value); id != graph::kNoValue) result[id] = true;
  return result;
}

// Whether the softmax's operand is in memory, its elements in the order of the result's, and the result is
// worth it: it was widened from there, or the operand is there in any case.
bool is_of_memory(const Site& site, const IdVector<ValueId, bool>& is_in_memory,
                  const IdVector<ValueId, bool>& is_returned) {
  const Graph& graph = site.source;
  const TensorMeta& result = site.meta();
  if (!is_contiguous(result) || !has_many_bytes(result)) return false;
  ValueId operand = before_reshapes(graph, tensor_argument(site.original, 0));
  while (operand != graph::kNoValue) {
    const Node* const made = producer(graph, operand);
    if (made == nullptr || made->op != op::to_copy() || graph.meta(operand).dtype != result.dtype) break;
    operand = before_reshapes(graph, tensor_argument(*made, 0));
  }
  if (operand == graph::kNoValue) return false;
  const TensorMeta& meta = graph.meta(operand);
  const bool is_narrow = item_size(meta.dtype) < item_size(result.dtype);
  const bool is_there = is_returned[operand] && meta.dtype == result.dtype;
  return is_floating(meta.dtype) && (is_narrow || is_there) && meta.device == result.device &&
         is_in_memory[operand];
}

}  // namespace

Graph separate_softmax_rows(const Graph& graph) {
  const IdVector<ValueId, bool> is_in_memory = values_in_memory(graph), is_returned = returned_values(graph);
  return rewrite(graph, [&](const Site& site) -> std::optional<std::vector<ValueId>> {
    const ops::Rows rows = ops::traits_of(*site.node.op).rows;
    if (rows == ops::Rows::None || site.meta().rank() == 0) return std::nullopt;
    const TensorMeta result = site.meta();
    if (!is_of_memory(site, is_in_memory, is_returned)) return std::nullopt;
    ops::Composer c(site.graph, site.node);
    const auto operand = std::get<ValueRef>(site.node.args.at(0));
    const ValueRef wide = c.meta(operand).dtype == result.dtype ? operand : c.convert(operand, result.dtype);
    const std::vector<ValueRef> of_row = c.call_many(op::softmax_rows(), {wide, site.node.args.at(1)});
    const ValueRef below = c.call(op::sub(), {wide, of_row[0]});
    ValueRef value = rows == ops::Rows::Softmax ? c.call(op::div(), {c.call(op::exp(), {below}), of_row[1]})
                                                : c.call(op::sub(), {below, c.call(op::log(), {of_row[1]})});
    if (c.meta(value).dtype != result.dtype) value = c.convert(value, result.dtype);
    const TensorMeta& made = site.graph.meta(value.id);
    check(made.sizes == result.sizes && is_contiguous(made), "a softmax of its rows has another layout");
    return std::vector{value.id};
  });
}

}  // namespace oxy::passes
