#include "passes/attention/recognise_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "aten/operators.h"
#include "base/error.h"
#include "ops/core/composer.h"
#include "passes/attention/attention_mask.h"
#include "passes/attention/written_attention.h"
#include "passes/rewriting/rewrite.h"
#include "sym/hints.h"

namespace oxy::passes {
namespace {

AttentionSite site_of(const Graph& source, const WrittenAttention& attention) {
  const auto size = [&](size_t axis) { return sym::estimate(attention.axes.size(axis)); };
  const auto is_of_mask = [](const ScoreStep& step) { return step.kind != ScoreStep::Kind::Scale; };
  return {.dtype = source.meta(attention.values.tensor).dtype,
          .batches = size(kBatches),
          .heads = size(kHeads),
          .rows = size(kRows),
          .keys = size(kKeys),
          .width = size(kWidth),
          .is_masked = std::ranges::any_of(attention.steps, is_of_mask)};
}

// Of query and keys; the number by which their products are multiplied.
double scale_of(const WrittenAttention& attention) {
  double scale = attention.query.scale * attention.keys.scale;
  for (const ScoreStep& step : attention.steps)
    if (step.kind == ScoreStep::Kind::Scale) scale *= step.number;
  return scale;
}

// Whether all rows begin at a multiple of so many elements, if the tensor's memory does.
bool has_aligned_rows(const TensorMeta& meta, int64_t alignment) {
  if (alignment == 1) return true;
  const auto is_aligned = [&](const Expr& e) { return sym::known_divisible(e, Expr(alignment)); };
  return is_aligned(meta.storage_offset) &&
         std::all_of(meta.strides.begin(), meta.strides.end() - 1, is_aligned);
}

// With elements side by side along the width, and rows that do not overlap.
ValueRef with_dense_rows(ops::Composer& composer, ValueRef operand, int64_t alignment) {
  const TensorMeta meta = composer.meta(operand);
  const bool is_dense = meta.strides[3] == Expr(1) &&
                        (meta.sizes[2] == Expr(1) || sym::known_less_equal(meta.sizes[3], meta.strides[2]));
  return is_dense && has_aligned_rows(meta, alignment)
             ? operand
             : composer.call(op::clone(), {operand, MemoryFormat::Contiguous});
}

// The mask, with rows that are longer in memory if their length does not fit.
ValueRef with_aligned_rows(ops::Composer& composer, ValueRef mask, int64_t alignment) {
  if (alignment == 1) return mask;
  const TensorMeta meta = composer.meta(mask);
  if (meta.sizes.back() == Expr(1)) throw Unsupported("a mask that repeats one element along its rows");
  if (has_aligned_rows(meta, alignment)) return mask;
  const Expr keys = meta.sizes.back();
  const Expr missing = sym::mod(-keys, Expr(alignment));
  if (missing == Expr(0)) return composer.call(op::clone(), {mask, MemoryFormat::Contiguous});
  const ValueRef padded = composer.call(op::constant_pad(), {mask, std::vector<Expr>{0, missing}, Expr(0)});
  return composer.call(op::slice(), {padded, Expr(-1), Expr(0), keys, Expr(1)});
}

// The call with arguments by name, as operators have them in different places.
std::vector<Argument> arguments_of(const OperatorSchema& op, ValueRef query, ValueRef keys, ValueRef values,
                                   std::optional<ValueRef> mask, double scale) {
  std::vector<Argument> arguments;
  for (const ArgumentInfo& argument : op.arguments) {
    if (argument.name == "query")
      arguments.emplace_back(query);
    else if (argument.name == "key")
      arguments.emplace_back(keys);
    else if (argument.name == "value")
      arguments.emplace_back(values);
    else if (argument.name == "scale")
      arguments.emplace_back(scale);
    else if (argument.name == "attn_mask" || argument.name == "attn_bias")
      arguments.push_back(mask ? Argument(*mask) : Argument(graph::None{}));
    else if (argument.name == "dropout_p")
      arguments.emplace_back(0.0);
    else
      arguments.emplace_back(false);  // is_causal, and results that nobody wants
  }
  return arguments;
}

// What replaces the second product; Unsupported if its kernel does not take the operands.
ValueId compose(const Rewriter& rewriter, ops::Composer& composer, const WrittenAttention& attention,
                const AttentionKernel& kernel) {
  const Graph& source = rewriter.source();
  const TensorMeta& expected = source.meta(source.nodes[attention.result].outputs.front());
  const Axes& axes = attention.axes;
  const double scale = scale_of(attention);
  if (!(scale > 0) || !std::isfinite(scale)) throw Unsupported("a scale of another kind");
  for (const size_t axis : {kBatches, kHeads, kRows, kKeys})
    if (!kernel.takes_nothing && axes.size(axis).range().low < 1) throw Unsupported("perhaps no elements");
  const auto operand = [&](const AttentionOperand& factor, size_t row, size_t column) {
    const ValueRef tensor = arranged(composer, axes, {rewriter.map(factor.tensor)}, factor.placement,
                                     {kBatches, kHeads, row, column});
    return with_dense_rows(composer, tensor, kernel.alignment);
  };
  const ValueRef query = operand(attention.query, kRows, kWidth);
  const ValueRef keys = operand(attention.keys, kKeys, kWidth);
  const ValueRef values = operand(attention.values, kKeys, kWidth);
  const std::optional<AttentionMask> mask =
      attention_mask(rewriter, composer, attention, kernel.takes_float_mask);
  const auto tensor =
      mask ? std::optional(with_aligned_rows(composer, mask->tensor, kernel.alignment)) : std::nullopt;
  ValueRef result = composer.call(kernel.op, arguments_of(*kernel.op, query, keys, values, tensor, scale));
  if (mask && mask->may_hide_rows)
    result = composer.call(
        op::where(), {hidden_rows(composer, mask->tensor), std::numeric_limits<double>::quiet_NaN(), result});
  if (!is_contiguous(composer.meta(result)))
    result = composer.call(op::clone(), {result, MemoryFormat::Contiguous});
  if (composer.meta(result).sizes != expected.sizes)
    result = composer.call(op::view(), {result, expected.sizes});
  if (!same_layout(composer.meta(result), expected)) throw Unsupported("other metadata");
  return result.id;
}

}  // namespace

Graph recognise_attention(const Graph& source, const ChooseAttention& choose) {
  if (!choose) return source;
  const auto readers = only_readers(source);
  std::vector<std::optional<WrittenAttention>> found;
  IdVector<NodeId, int> at(source.nodes.size(), -1);
  for (const Node& node : source.nodes) {
    if (node.op != op::softmax()) continue;
    if (auto attention = written_attention(source, readers, node)) {
      at[attention->result] = static_cast<int>(found.size());
      found.push_back(std::move(attention));
    }
  }
  if (found.empty()) return source;

  Rewriter rewriter(source);
  for (const NodeId id : source.nodes.ids()) {
    const Node& node = source.nodes[id];
    Node renamed = rewriter.renamed(node);
    if (at[id] >= 0) {
      const WrittenAttention& attention = *found[static_cast<size_t>(at[id])];
      const AttentionKernel kernel = choose(site_of(source, attention));
      const size_t nodes = rewriter.graph().nodes.size(), values = rewriter.graph().values.size();
      if (kernel.op != nullptr) {
        try {
          ops::Composer composer(rewriter.graph(), node);
          rewriter.set(node.outputs.front(), compose(rewriter, composer, attention, kernel));
          continue;
        } catch (const Unsupported&) {
          rewriter.graph().nodes.resize(nodes);
          rewriter.graph().values.resize(values);
        }
      }
    }
    rewriter.keep(std::move(renamed));
  }
  return rewriter.finish();
}

}  // namespace oxy::passes
