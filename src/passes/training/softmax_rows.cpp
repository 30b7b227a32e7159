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

// The operand before it was widened, perhaps with other sizes. kNoValue if it was not, if the result is
// small, or where the elements are not in the order of the result's in memory.
ValueId narrow_operand(const Graph& graph, const Node& node, const TensorMeta& result) {
  const auto is_plain = [&](ValueId id) { return is_contiguous(graph.meta(id)); };
  if (!is_contiguous(result)) return graph::kNoValue;
  ValueId operand = tensor_argument(node, 0);
  bool is_converted = false;
  for (;;) {
    const Node* const made = is_plain(operand) ? producer(graph, operand) : nullptr;
    const bool converts = made != nullptr && made->op == op::to_copy() && !is_converted;
    const bool reshapes = made != nullptr && ops::traits_of(*made->op).movement == ops::Movement::Reshape;
    if (!converts && !reshapes) break;
    is_converted = is_converted || converts;
    operand = tensor_argument(*made, 0);
  }
  const TensorMeta& meta = graph.meta(operand);
  const auto bytes = static_cast<int64_t>(item_size(result.dtype));
  const bool is_widened = is_floating(meta.dtype) && item_size(meta.dtype) < item_size(result.dtype) &&
                          meta.device == result.device && is_plain(operand);
  return is_widened && sym::estimate(element_count(result)) * bytes >= kLeastBytes ? operand
                                                                                   : graph::kNoValue;
}

// The operand as memory holds it, which is what the backward pass reads, in the type of the result.
ValueRef widened(ops::Composer& c, ValueId narrow, const TensorMeta& result) {
  const Node* const made = c.producer(ValueRef{narrow});
  ValueRef operand = std::get<ValueRef>(c.arg(0));
  if (made != nullptr && ops::entry_of(*made->op).lower) {
    operand = c.call(op::as_stored(), {ValueRef{narrow}});
    if (c.meta(operand).sizes != result.sizes) operand = c.call(op::view(), {operand, result.sizes});
  }
  return c.meta(operand).dtype == result.dtype ? operand : c.convert(operand, result.dtype);
}

}  // namespace

Graph separate_softmax_rows(const Graph& graph) {
  return rewrite(graph, [](const Site& site) -> std::optional<std::vector<ValueId>> {
    const ops::Rows rows = ops::traits_of(*site.node.op).rows;
    if (rows == ops::Rows::None || site.meta().rank() == 0) return std::nullopt;
    const TensorMeta result = site.meta();
    const ValueId narrow = narrow_operand(site.graph, site.node, result);
    if (narrow == graph::kNoValue) return std::nullopt;
    ops::Composer c(site.graph, site.node);
    const ValueRef wide = widened(c, narrow, result);
    const std::vector<ValueRef> of_row = c.call_many(op::softmax_rows(), {wide, site.node.args.at(1)});
    const ValueRef below = c.call(op::sub(), {wide, of_row[0]});
    const ValueRef value = rows == ops::Rows::Softmax
                               ? c.call(op::div(), {c.call(op::exp(), {below}), of_row[1]})
                               : c.call(op::sub(), {below, c.call(op::log(), {of_row[1]})});
    check(same_layout(site.graph.meta(value.id), result), "a softmax of its rows has another layout");
    return std::vector{value.id};
  });
}

}  // namespace oxy::passes
