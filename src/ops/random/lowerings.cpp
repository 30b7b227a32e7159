#include "ops/random/lowerings.h"

#include "loop/dropout_threads.h"

namespace oxy::ops::lowerings {

using loop::BodyBuilder;
using loop::Index;
using loop::LoweringContext;
using loop::Tensor;
using loop::Value;

namespace {

constexpr int kWorkOfPhilox = 60;

// What the mask keeps of x, times `scale`.
Tensor masked(LoweringContext& context, const Tensor& x, const Tensor& mask, const TensorMeta& out,
              double scale) {
  const DType wide = loop::compute_dtype(out.dtype);
  return context.pointwise(
      {x, mask}, out.sizes, out.dtype,
      [=](BodyBuilder& b, std::span<const Value> values) {
        return values[0] * b.cast(values[1], wide) * b.constant(scale, wide);
      },
      2);
}

}  // namespace

void philox_mask(LoweringContext& context, const graph::Node& node) {
  // (states, place, p, width, threads, dtype, sizes, strides)
  const Tensor states = context.operand(node, 0);
  const auto integer = [&](size_t i) { return std::get<Expr>(node.args.at(i)).constant(); };
  const int64_t place = integer(1), width = integer(3), threads = integer(4);
  const double kept = 1.0 - std::get<double>(node.args.at(2));
  const DType wide = loop::compute_dtype(std::get<DType>(node.args.at(5)));
  const auto& sizes = std::get<std::vector<Expr>>(node.args.at(6));
  const auto strides = std::get<std::vector<Expr>>(node.args.at(7));
  const Expr count = sym::product(sizes);
  const Tensor mask = context.generate(
      {states}, sizes, DType::Bool,
      [=](BodyBuilder& b, const Index& index) {
        Expr element = 0;
        for (size_t d = 0; d < index.size(); ++d) element = element + index[d] * strides[d];
        const loop::DropoutPlace where = loop::dropout_place(element, count, width, threads);
        const Value counter = LoweringContext::element(b, states, {Expr(1 + place)});
        const Value number = b.philox(LoweringContext::element(b, states, {Expr(0)}),
                                      counter + b.index(where.counter), b.index(where.position));
        return b.cast(number, wide) < b.constant(kept, wide);
      },
      kWorkOfPhilox);
  if (context.uses(node.outputs[0]) > 1) context.realise(mask);
  context.set(node.outputs[0], mask);
}

void scale_kept(LoweringContext& context, const graph::Node& node) {
  const Tensor input = context.operand(node, 0), mask = context.operand(node, 1);
  const TensorMeta& result = context.output_meta(node);
  const double kept = 1.0 - std::get<double>(node.args.at(2));
  const bool is_single = loop::compute_dtype(result.dtype) == DType::Float32;
  const double scale =
      is_single ? static_cast<double>(static_cast<float>(1.0 / static_cast<float>(kept))) : 1.0 / kept;
  context.set(node.outputs[0], masked(context, input, mask, result, scale));
}

void dropout_backward(LoweringContext& context, const graph::Node& node) {
  const Tensor grad = context.operand(node, 0), mask = context.operand(node, 1);
  context.set(node.outputs[0],
              masked(context, grad, mask, context.output_meta(node), std::get<double>(node.args.at(2))));
}

}  // namespace oxy::ops::lowerings
