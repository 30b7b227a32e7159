#include "passes/training/softmax_rows.h"

#include "aten/dtype.h"
#include "aten/operators.h"
#include "base/error.h"
#include "ops/core/composer.h"
#include "passes/rewriting/rewrite.h"
#include "sym/hints.h"

namespace oxy::passes {
namespace {

constexpr int64_t kLeastBytes = 1 << 20;  // of a result: fewer stay in a cache

// Whether the backward pass reads what the forward pass reads: what a kernel makes has more digits there than
// in memory, and may be made again of what was saved.
bool is_memory(const Graph& graph, ValueId id) {
  const Node* const made = producer(graph, id);
  return made == nullptr || !ops::entry_of(*made->op).lower;
}

// Whether the softmax's operand was widened from memory, its elements in the order of the result's, and the
// result is worth it.
bool is_of_narrow_memory(const Graph& graph, const Node& node, const TensorMeta& result) {
  const auto bytes = static_cast<int64_t>(item_size(result.dtype));
  if (!is_contiguous(result) || sym::estimate(element_count(result)) * bytes < kLeastBytes) return false;
  ValueId operand = tensor_argument(node, 0);
  for (;;) {
    if (!is_contiguous(graph.meta(operand))) return false;
    const Node* const made = producer(graph, operand);
    const bool converts =
        made != nullptr && made->op == op::to_copy() && graph.meta(operand).dtype == result.dtype;
    const bool reshapes = made != nullptr && ops::traits_of(*made->op).movement == ops::Movement::Reshape;
    if (!converts && !reshapes) break;
    operand = tensor_argument(*made, 0);
  }
  const TensorMeta& meta = graph.meta(operand);
  return is_floating(meta.dtype) && item_size(meta.dtype) < item_size(result.dtype) &&
         meta.device == result.device && is_memory(graph, operand);
}

}  // namespace

Graph separate_softmax_rows(const Graph& graph) {
  return rewrite(graph, [](const Site& site) -> std::optional<std::vector<ValueId>> {
    const ops::Rows rows = ops::traits_of(*site.node.op).rows;
    if (rows == ops::Rows::None || site.meta().rank() == 0) return std::nullopt;
    const TensorMeta result = site.meta();
    if (!is_of_narrow_memory(site.graph, site.node, result)) return std::nullopt;
    ops::Composer c(site.graph, site.node);
    const auto operand = std::get<ValueRef>(site.node.args.at(0));
    const ValueRef wide = c.meta(operand).dtype == result.dtype ? operand : c.convert(operand, result.dtype);
    const std::vector<ValueRef> of_row = c.call_many(op::softmax_rows(), {wide, site.node.args.at(1)});
    const ValueRef below = c.call(op::sub(), {wide, of_row[0]});
    const ValueRef value = rows == ops::Rows::Softmax
                               ? c.call(op::div(), {c.call(op::exp(), {below}), of_row[1]})
                               : c.call(op::sub(), {below, c.call(op::log(), {of_row[1]})});
    const TensorMeta& made = site.graph.meta(value.id);
    check(made.sizes == result.sizes && is_contiguous(made), "a softmax of its rows has another layout");
    return std::vector{value.id};
  });
}

}  // namespace oxy::passes
