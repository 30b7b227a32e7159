#include "passes/training/absent_gradients.h"

#include <algorithm>

#include "aten/dtype.h"
#include "aten/operators.h"
#include "ops/core/composer.h"
#include "passes/rewriting/rewrite.h"
#include "passes/simplification/dead_code.h"

namespace oxy::passes {
namespace {

struct Flow {
  IdVector<ValueId, bool> present;  // depends on a gradient that comes in
  IdVector<ValueId, bool> absent;   // depends on one that does not

  bool is_zero(ValueId id) const { return absent[id] && !present[id]; }
};

Flow flow_of(const Graph& source, const std::vector<bool>& is_gradient, const std::vector<bool>& absent) {
  Flow flow{IdVector<ValueId, bool>(source.values.size()), IdVector<ValueId, bool>(source.values.size())};
  for (size_t i = 0; i < source.inputs.size(); ++i) {
    if (!is_gradient[i]) continue;
    (absent[i] ? flow.absent : flow.present)[source.inputs[i]] = true;
  }
  for (const Node& node : source.nodes) {
    bool is_present = false, is_absent = false;
    graph::for_each_input(node, [&](ValueId id) {
      is_present = is_present || flow.present[id];
      is_absent = is_absent || flow.absent[id];
    });
    for (const ValueId id : node.outputs) {
      if (id == graph::kNoValue) continue;
      flow.present[id] = is_present;
      flow.absent[id] = is_absent;
    }
  }
  return flow;
}

bool is_plain(const TensorMeta& meta) {
  return meta.storage_offset == Expr(0) && meta.strides == contiguous_strides(meta.sizes);
}

Expr elements_of_storage(const TensorMeta& meta) {
  if (std::ranges::find(meta.sizes, Expr(0)) != meta.sizes.end()) return Expr(0);
  Expr last = meta.storage_offset;
  for (size_t d = 0; d < meta.sizes.size(); ++d) last = last + (meta.sizes[d] - Expr(1)) * meta.strides[d];
  return last + Expr(1);
}

// The other term of a sum, one of whose terms is zero, if it has the sum's sizes and type.
ValueId remaining_term(const Graph& source, const Node& node, const Flow& flow) {
  if (node.op != op::add() || node.args.at(2) != Argument{Expr(1)}) return graph::kNoValue;
  const auto* left = std::get_if<ValueRef>(&node.args[0]);
  const auto* right = std::get_if<ValueRef>(&node.args[1]);
  if (left == nullptr || right == nullptr || flow.is_zero(left->id) == flow.is_zero(right->id))
    return graph::kNoValue;
  const ValueId other = flow.is_zero(left->id) ? right->id : left->id;
  const TensorMeta &term = source.meta(other), &sum = source.meta(node.outputs[0]);
  const bool is_like = term == sum || (term.sizes == sum.sizes && term.dtype == sum.dtype && is_plain(sum));
  return is_like ? other : graph::kNoValue;
}

}  // namespace

Graph without_gradients(const Graph& source, const std::vector<bool>& is_gradient,
                        const std::vector<bool>& absent) {
  const Flow flow = flow_of(source, is_gradient, absent);
  Rewriter rewriter(source);
  IdVector<ValueId, bool> is_made(source.values.size(), false);
  const auto make_zeros = [&](ValueId id) {
    if (!flow.is_zero(id) || is_made[id]) return;
    const TensorMeta& meta = source.meta(id);
    ops::Composer composer(rewriter.graph(), Node{});
    const Argument zero = is_floating(meta.dtype) ? Argument{0.0} : Argument{Expr(0)};
    const auto full = [&](const std::vector<Expr>& sizes) {
      return composer.call(op::full(), {sizes, zero, meta.dtype, Argument{}, meta.device});
    };
    const ValueRef zeros =
        is_plain(meta) ? full(meta.sizes)
                       : composer.call(op::as_strided(), {full({elements_of_storage(meta)}), meta.sizes,
                                                          meta.strides, meta.storage_offset});
    rewriter.set(id, zeros.id);
    is_made[id] = true;
  };
  for (const Node& node : source.nodes) {
    bool is_zero = !node.outputs.empty();
    for (const ValueId id : node.outputs) is_zero = is_zero && (id == graph::kNoValue || flow.is_zero(id));
    if (is_zero) continue;
    if (const ValueId other = remaining_term(source, node, flow); other != graph::kNoValue) {
      const ValueId sum = node.outputs[0], term = rewriter.map(other);
      ops::Composer composer(rewriter.graph(), Node{});
      rewriter.set(sum, source.meta(other) == source.meta(sum)
                            ? term
                            : composer.call(op::clone(), {ValueRef{term}, MemoryFormat::Contiguous}).id);
      continue;
    }
    graph::for_each_input(node, make_zeros);
    rewriter.keep(rewriter.renamed(node));
  }
  for (const graph::Output& output : source.outputs)
    if (output.kind == graph::OutputKind::Value) make_zeros(output.value);
  for (const graph::Output& output : source.outputs)  // gradients passed on stay the inputs that they are
    if (output.kind == graph::OutputKind::InputAlias)
      rewriter.set(output.value, rewriter.graph().inputs[static_cast<size_t>(output.alias)]);
  return remove_dead_code(rewriter.finish());
}

}  // namespace oxy::passes
