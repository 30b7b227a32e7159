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

void philox_dropout(LoweringContext& context, const graph::Node& node) {
  // (input, states, place, p, width, threads, strides)
  const Tensor input = context.operand(node, 0), states = context.operand(node, 1);
  const auto integer = [&](size_t i) { return std::get<Expr>(node.args.at(i)).constant(); };
  const int64_t place = integer(2), width = integer(4), threads = integer(5);
  const double kept = 1.0 - std::get<double>(node.args.at(3));
  const auto strides = std::get<std::vector<Expr>>(node.args.at(6));
  const DType dtype = context.output_meta(node).dtype, wide = loop::compute_dtype(dtype);
  const double scale = wide == DType::Float32
                           ? static_cast<double>(static_cast<float>(1.0 / static_cast<float>(kept)))
                           : 1.0 / kept;
  const Expr count = sym::product(input.sizes);
  const Tensor mask = context.generate(
      {states}, input.sizes, DType::Bool,
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
  const bool keeps_mask = node.outputs[1] != graph::kNoValue && context.uses(node.outputs[1]) > 0;
  if (keeps_mask) context.realise(mask);
  context.set(node.outputs[0], masked(context, input, mask, context.output_meta(node), scale));
  if (keeps_mask) context.set(node.outputs[1], mask);
}

void dropout_backward(LoweringContext& context, const graph::Node& node) {
  const Tensor grad = context.operand(node, 0), mask = context.operand(node, 1);
  context.set(node.outputs[0],
              masked(context, grad, mask, context.output_meta(node), std::get<double>(node.args.at(2))));
}

}  // namespace oxy::ops::lowerings
