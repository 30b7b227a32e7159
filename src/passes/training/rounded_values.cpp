#include "passes/training/rounded_values.h"

#include <algorithm>
#include <ranges>

#include "aten/dtype.h"
#include "ops/core/registry.h"
#include "passes/rewriting/rewrite.h"

namespace oxy::passes {

using graph::kNoValue;
using graph::Node;
using graph::ValueId;

IdVector<ValueId, bool> rounded_values(const graph::Graph& backward) {
  IdVector<ValueId, bool> is_operand(backward.values.size()), is_source(backward.values.size());
  for (const Node& node : backward.nodes | std::views::reverse) {
    const auto any = [&](const IdVector<ValueId, bool>& values) {
      return std::ranges::any_of(node.outputs, [&](ValueId id) { return id != kNoValue && values[id]; });
    };
    const bool of_operand = any(is_operand), of_source = any(is_source);
    graph::for_each_input(node, [&](ValueId id) {
      if (of_operand && node.op->is_view()) is_operand[id] = true;
      if ((of_operand && !node.op->is_view()) || of_source) is_source[id] = true;
    });
    if (const int centred = ops::traits_of(*node.op).centred; centred >= 0)
      is_operand[tensor_argument(node, static_cast<size_t>(centred))] = true;
  }
  IdVector<ValueId, bool> result(backward.values.size());
  for (const ValueId id : backward.inputs) {
    const DType type = backward.meta(id).dtype;
    result[id] = is_source[id] && is_floating(type) && item_size(type) < item_size(DType::Float32);
  }
  return result;
}

}  // namespace oxy::passes
