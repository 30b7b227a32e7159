#include "ops/creation/lowerings.h"

#include "loop/view.h"
#include "ops/core/lowering_arguments.h"

namespace oxy::ops::lowerings {

using loop::compute_dtype;

namespace {

size_t argument_named(const Node& node, std::initializer_list<std::string_view> names) {
  for (size_t i = 0; i < node.op->arguments.size(); ++i)
    for (std::string_view name : names)
      if (node.op->arguments[i].name == name) return i;
  not_lowered(node, "arguments of these names");
}

void fill(LoweringContext& context, const Node& node, loop::Scalar value) {
  const TensorMeta& out = context.output_meta(node);
  context.set(node.outputs[0], context.constant(value, out.sizes, out.dtype));
}

}  // namespace

void zeros(LoweringContext& context, const Node& node) {
  fill(context, node, {int64_t{0}});
}
void ones(LoweringContext& context, const Node& node) {
  fill(context, node, {int64_t{1}});
}

void full(LoweringContext& context, const Node& node) {
  Tensor value = context.operand(node, argument_named(node, {"fill_value", "value", "s"}));
  const TensorMeta& out = context.output_meta(node);
  context.set(node.outputs[0], context.generate(
                                   {value}, out.sizes, out.dtype,
                                   [value, dtype = out.dtype](BodyBuilder& b, const Index&) {
                                     Value x = LoweringContext::element(b, value,
                                                                        Index(value.sizes.size(), Expr(0)));
                                     return b.round_to(b.cast(x, compute_dtype(dtype)), dtype);
                                   },
                                   0));
}

void arange(LoweringContext& context, const Node& node) {
  const TensorMeta& out = context.output_meta(node);
  size_t end = argument_named(node, {"end"});
  bool has_start = end > 0;
  bool has_step = node.op->arguments.size() > end + 1 && node.op->arguments[end + 1].name == "step";
  graph::Argument start = has_start ? node.args[0] : graph::Argument(Expr(0));
  graph::Argument step = has_step ? node.args[end + 1] : graph::Argument(Expr(1));
  const auto* first = std::get_if<Expr>(&start);
  const auto* stride = std::get_if<Expr>(&step);
  if (first != nullptr && stride != nullptr && is_integral(out.dtype)) {
    context.set(node.outputs[0], context.generate({}, out.sizes, out.dtype,
                                                  [first = *first, stride = *stride, dtype = out.dtype](
                                                      BodyBuilder& b, const Index& i) {
                                                    return b.index(first + stride * i[0], dtype);
                                                  }));
    return;
  }
  if (!is_floating(out.dtype)) not_lowered(node, "integers between floating bounds");
  // Eager computes the elements in double precision and rounds them.
  Tensor origin = context.operand(start);
  Tensor distance = context.operand(step);
  context.set(node.outputs[0],
              context.generate(
                  {}, out.sizes, out.dtype,
                  [=, dtype = out.dtype](BodyBuilder& b, const Index& i) {
                    Value a = b.cast(LoweringContext::element(b, origin, {}), DType::Float64);
                    Value d = b.cast(LoweringContext::element(b, distance, {}), DType::Float64);
                    Value x = a + b.index(i[0], DType::Float64) * d;
                    return b.round_to(b.cast(x, compute_dtype(dtype)), dtype);
                  },
                  4));
}

void linspace(LoweringContext& context, const Node& node) {
  const TensorMeta& out = context.output_meta(node);
  if (!is_floating(out.dtype)) not_lowered(node, "integers");
  // Releases of PyTorch round at different places on the way.
  if (out.dtype != compute_dtype(out.dtype)) not_lowered(node, "half precision");
  if (is_tensor(node, 0) || is_tensor(node, 1)) not_lowered(node, "bounds that are tensors");
  const Tensor start = context.operand(node, 0);
  const Tensor end = context.operand(node, 1);
  const Expr steps = expression(node, 2);
  const auto element = [=, type = out.dtype](BodyBuilder& b, const Index& i) {
    const Value first = b.cast(LoweringContext::element(b, start, {}), type);
    const Value last = b.cast(LoweringContext::element(b, end, {}), type);
    if (steps == Expr(1)) return first;
    const Value step = (last - first) / b.index(sym::max(steps - 1, 1), type);
    // Symmetric from both ends, so that the last element is exact.
    const Value forth = first + b.index(i[0], type) * step;
    const Value back = last - b.index(steps - 1 - i[0], type) * step;
    return where(b.index(i[0]) < b.index(sym::max(sym::floordiv(steps, 2), 1)), forth, back);
  };
  context.set(node.outputs[0], context.generate({}, out.sizes, out.dtype, element, 6));
}

void eye(LoweringContext& context, const Node& node) {
  const TensorMeta& out = context.output_meta(node);
  context.set(node.outputs[0], context.generate(
                                   {}, out.sizes, out.dtype,
                                   [dtype = out.dtype](BodyBuilder& b, const Index& i) {
                                     return b.cast(b.index(i[0]) == b.index(i[1]), compute_dtype(dtype));
                                   },
                                   3));
}

}  // namespace oxy::ops::lowerings
