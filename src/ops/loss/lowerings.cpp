#include "ops/loss/lowerings.h"

#include "loop/view.h"
#include "ops/core/lowering_arguments.h"

namespace oxy::ops::lowerings {

using loop::compute_dtype;
using loop::ReductionKind;

namespace {

enum Reduction : int64_t { kNone = 0, kMean = 1, kSum = 2 };

}  // namespace

void nll_loss(LoweringContext& context, const Node& node) {
  Tensor x = context.operand(node, 0);
  Tensor target = context.operand(node, 1);
  bool has_weight = !is_none(node, 2);
  Tensor weight = has_weight ? context.operand(node, 2) : x;
  int64_t reduction = integer(node, 3);
  const Expr ignored = expression(node, 4);
  if (x.rank() != 2 || target.rank() != 1) not_lowered(node, "one example without a batch");
  if (!sym::known_less(0, x.sizes[1])) not_lowered(node, "what may be no classes");
  DType type = compute_dtype(x.dtype);
  std::vector<Expr> batch = {x.sizes[0]};
  // One element a row is read: x is not worth memory. Each example's loss and weight; both are 0 where the
  // target is to be ignored.
  auto chosen = [=](BodyBuilder& b, const Index& index, const std::function<Value(const Expr&)>& fn) {
    Value t = LoweringContext::element(b, target, index);
    Value counted = b.cast(t, DType::Int64) != b.index(ignored);
    return b.masked(
        counted,
        [&] {
          return b.cast(fn(b.bind_index(LoweringContext::element(b, target, index), x.sizes[1], true, false)),
                        type);
        },
        b.constant(0.0, type));
  };
  auto weight_at = [=](BodyBuilder& b, const Expr& c) {
    return has_weight ? LoweringContext::element(b, weight, {c}) : b.constant(1.0, type);
  };
  Tensor losses = context.generate(
      {x, target, weight}, batch, type,
      [=](BodyBuilder& b, const Index& index) {
        return chosen(b, index, [&](const Expr& c) {
          return -LoweringContext::element(b, x, {index[0], c}) * weight_at(b, c);
        });
      },
      5, true);
  Tensor weights = context.generate(
      {target, weight}, batch, type,
      [=](BodyBuilder& b, const Index& index) {
        return chosen(b, index, [&](const Expr& c) { return weight_at(b, c); });
      },
      4, true);
  const TensorMeta& out = context.output_meta(node, 0);
  const TensorMeta& total_meta = context.output_meta(node, 1);
  if (reduction == kNone) {
    context.set(node.outputs[0], context.cast(losses, out.dtype));
    if (context.uses(node.outputs[1]) > 0)
      context.set(node.outputs[1], context.constant(loop::Scalar{0.0}, total_meta.sizes, total_meta.dtype));
    return;
  }
  Tensor sum = context.reduce(ReductionKind::Sum, losses, {}, false, type)[0];
  Tensor total = context.reduce(ReductionKind::Sum, weights, {}, false, type)[0];
  if (context.uses(node.outputs[1]) > 0) context.set(node.outputs[1], context.cast(total, total_meta.dtype));
  if (reduction == kMean)
    sum = context.pointwise({sum, total}, {}, type,
                            [](BodyBuilder&, std::span<const Value> v) { return v[0] / v[1]; });
  context.set(node.outputs[0], context.cast(sum, out.dtype));
}

void mse_loss(LoweringContext& context, const Node& node) {
  Tensor a = context.operand(node, 0);
  Tensor b = context.operand(node, 1);
  if (a.sizes != b.sizes || a.dtype != b.dtype || !is_floating(a.dtype))
    not_lowered(node, "operands of two shapes or types");
  int64_t reduction = integer(node, 2);
  const TensorMeta& out = context.output_meta(node);
  DType type = compute_dtype(out.dtype);
  Tensor squares = context.pointwise(
      {a, b}, a.sizes, reduction == kNone ? out.dtype : type,
      [](BodyBuilder&, std::span<const Value> v) {
        Value difference = v[0] - v[1];
        return difference * difference;
      },
      2);
  if (reduction == kNone) return context.set(node.outputs[0], squares);
  Tensor sum = context.reduce(ReductionKind::Sum, squares, {}, false, type)[0];
  context.set(node.outputs[0],
              context.pointwise(
                  {sum}, {}, out.dtype,
                  [reduction, count = sym::product(a.sizes)](BodyBuilder& builder, std::span<const Value> v) {
                    return reduction == kMean ? v[0] / builder.index(count, v[0].dtype) : v[0];
                  }));
}

}  // namespace oxy::ops::lowerings
