#include "ops/recording/shapes.h"

#include "ops/core/element_wise.h"

namespace oxy::ops::shapes {

Metas recurrent(const ShapeContext& context) {
  const TensorMeta& input = context.tensor(0);
  std::vector<const TensorMeta*> states;
  if (context.is_tensor(1))
    states.push_back(&context.tensor(1));
  else
    for (const graph::ValueId id : tensors(context, 1)) states.push_back(&context.meta_of(id));
  if (input.rank() != 3 || states.empty()) not_covered(context, "an input of another rank");
  const bool batch_first = flag(context, 8);
  const Expr& steps = input.sizes[batch_first ? 1 : 0];
  const Expr& batch = input.sizes[batch_first ? 0 : 1];
  if (context.less(steps, 1)) not_covered(context, "no step");
  const Expr layers = 2 * integer(context, 4);
  Metas last;
  for (const TensorMeta* state : states) {
    if (state->rank() != 3 || state->dtype != input.dtype || !context.equal(state->sizes[1], batch))
      not_covered(context, "a state that does not fit");
    last.push_back(contiguous_meta(state->dtype, state->device, state->sizes));
  }
  const bool two_ways = flag(context, 7);
  const Expr expected = two_ways ? layers : Expr(integer(context, 4));
  if (!context.equal(states[0]->sizes[0], expected)) not_covered(context, "a state of other layers");
  const Expr width = states[0]->sizes[2] * (two_ways ? 2 : 1);
  TensorMeta output = contiguous_meta(input.dtype, input.device, {steps, batch, width});
  if (batch_first) {
    std::swap(output.sizes[0], output.sizes[1]);
    std::swap(output.strides[0], output.strides[1]);
  }
  Metas result{output};
  result.insert(result.end(), last.begin(), last.end());
  return result;
}

Metas nothing(const ShapeContext& context) {
  return {};
}

Metas recurrent_backward(const ShapeContext& context) {
  std::vector<graph::ValueId> differentiated = {std::get<graph::ValueRef>(context.arg(1)).id};
  for (const size_t list : {2, 3}) {
    const std::vector<graph::ValueId>& ids = tensors(context, list);
    differentiated.insert(differentiated.end(), ids.begin(), ids.end());
  }
  const auto* wanted = std::get_if<std::vector<bool>>(&context.arg(10));
  if (wanted == nullptr || wanted->size() != differentiated.size())
    not_covered(context, "as many flags as tensors");
  Metas result;
  for (size_t i = 0; i < differentiated.size(); ++i) {
    if (!(*wanted)[i]) continue;
    const TensorMeta& of = context.meta_of(differentiated[i]);
    result.push_back(contiguous_meta(of.dtype, of.device, of.sizes));
  }
  return result;
}

}  // namespace oxy::ops::shapes
