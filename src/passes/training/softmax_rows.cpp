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

// The operand before it was widened. kNoValue if it was not, if the result is small, or laid out otherwise.
ValueId narrow_operand(const Graph& graph, const Node& node, const TensorMeta& result) {
  ValueId operand = tensor_argument(node, 0);
  const Node* const made = producer(graph, operand);
  if (made != nullptr && made->op == op::to_copy()) operand = tensor_argument(*made, 0);
  const TensorMeta& meta = graph.meta(operand);
  const auto bytes = static_cast<int64_t>(item_size(result.dtype));
  const bool is_widened = is_floating(meta.dtype) && item_size(meta.dtype) < item_size(result.dtype) &&
                          meta.device == result.device && meta.strides == result.strides;
  return is_widened && sym::estimate(element_count(result)) * bytes >= kLeastBytes ? operand
                                                                                   : graph::kNoValue;
}

// The operand as memory holds it, which is what the backward pass reads, in the type of the result.
ValueRef widened(ops::Composer& c, ValueId narrow, DType type) {
  const Node* const made = c.producer(ValueRef{narrow});
  if (made != nullptr && ops::entry_of(*made->op).lower)
    return c.convert(c.call(op::as_stored(), {ValueRef{narrow}}), type);
  const auto operand = std::get<ValueRef>(c.arg(0));
  return c.meta(operand).dtype == type ? operand : c.convert(operand, type);
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
    const ValueRef wide = widened(c, narrow, result.dtype);
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
