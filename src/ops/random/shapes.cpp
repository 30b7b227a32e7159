#include "ops/random/shapes.h"

#include "ops/core/element_wise.h"
#include "ops/core/memory_format.h"

namespace oxy::ops::shapes {
namespace {

TensorMeta with_options(const ShapeContext& context, DType dtype, const std::vector<Expr>& sizes) {
  TensorMeta out = contiguous_meta(dtype, {}, sizes);
  const auto& arguments = context.schema().arguments;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].kind == ArgumentKind::DType) out.dtype = optional_dtype(context, i).value_or(dtype);
    if (arguments[i].kind == ArgumentKind::Device) out.device = device_or(context, i, {});
  }
  return out;
}

}  // namespace

Metas random_integers(const ShapeContext& context) {
  const bool has_low = context.schema().arguments[1].kind == ArgumentKind::Int;
  return {with_options(context, DType::Int64, list(context, has_low ? 2 : 1))};
}

Metas random_permutation(const ShapeContext& context) {
  return {with_options(context, DType::Int64, {expression(context, 0)})};
}

Metas bernoulli(const ShapeContext& context) {
  const TensorMeta& self = context.tensor(0);
  if (context.size() > 1 && context.is_tensor(1)) not_covered(context, "probabilities as a tensor");
  return {contiguous_meta(self.dtype, self.device, self.sizes)};
}

Metas normal(const ShapeContext& context) {
  const TensorMeta& deviation = context.tensor(1);
  if (!context.is_tensor(0)) return {contiguous_meta(deviation.dtype, deviation.device, deviation.sizes)};
  const TensorMeta& mean = context.tensor(0);
  const TensorMeta* const operands[] = {&mean, &deviation};
  return {contiguous_meta(mean.dtype, mean.device, broadcast(context, operands))};
}

namespace {

TensorMeta mask_of(const ShapeContext& context) {
  const TensorMeta& self = context.tensor(0);
  if (!is_floating(self.dtype)) not_covered(context, "an operand of this type");
  return dense_like(context, self, DType::Bool);
}

TensorMeta product_with(const ShapeContext& context, const TensorMeta& self, const TensorMeta& mask) {
  const TensorMeta* const operands[] = {&self, &mask};
  TensorMeta out = element_wise_layout(context, operands);
  out.dtype = self.dtype;
  out.device = self.device;
  return out;
}

Metas masked(const ShapeContext& context) {
  const TensorMeta mask = mask_of(context);
  return {product_with(context, context.tensor(0), mask), mask};
}

}  // namespace

Metas dropout(const ShapeContext& context) {
  const bool trains = context.is_none(2) || flag(context, 2);
  if (trains) return masked(context);
  return {dense_like(context, context.tensor(0), context.tensor(0).dtype), mask_of(context)};
}

Metas dropout_backward(const ShapeContext& context) {
  const TensorMeta& grad = context.tensor(0);
  // On the host eager multiplies; its kernel for a GPU writes to a tensor of its own.
  return {is_on_host(grad.device) ? product_with(context, grad, context.tensor(1))
                                  : in_suggested_format(context, grad)};
}

Metas philox_states(const ShapeContext& context) {
  const auto count = static_cast<int64_t>(list(context, 0).size());
  return {contiguous_meta(DType::Int64, device_or(context, 2, {}), {Expr(1 + count)})};
}

Metas philox_mask(const ShapeContext& context) {
  return {{.dtype = DType::Bool,
           .device = context.tensor(0).device,
           .sizes = list(context, 6),
           .strides = list(context, 7)}};
}

Metas scale_kept(const ShapeContext& context) {
  return {product_with(context, context.tensor(0), context.tensor(1))};
}

Metas multinomial(const ShapeContext& context) {
  const TensorMeta& self = context.tensor(0);
  if (self.rank() != 1 && self.rank() != 2) not_covered(context, "neither one nor two dimensions");
  std::vector<Expr> sizes = self.sizes;
  sizes.back() = expression(context, 1);
  return {contiguous_meta(DType::Int64, self.device, std::move(sizes))};
}

}  // namespace oxy::ops::shapes
