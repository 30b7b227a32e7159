#include "ops/pointwise/shapes.h"

#include "ops/core/element_wise.h"

namespace oxy::ops::shapes {
namespace {

TensorMeta refuse(const ShapeContext& context, TensorMeta meta, bool refused) {
  if (refused) not_covered(context, "an operand of this type");
  return meta;
}

}  // namespace

Metas unary(const ShapeContext& context) {
  return {element_wise(context, {0}, ResultType::Promoted)};
}

Metas unary_number(const ShapeContext& context) {
  TensorMeta out = element_wise(context, {0}, ResultType::Promoted);
  return {refuse(context, out, out.dtype == DType::Bool)};
}

Metas unary_to_float(const ShapeContext& context) {
  return {element_wise(context, {0}, ResultType::PromotedToFloat)};
}

Metas second_to_float(const ShapeContext& context) {
  if (integer(context, 0) < 0) not_covered(context, "a negative order");
  return {element_wise(context, {1}, ResultType::PromotedToFloat)};
}

Metas multivariate_gamma(const ShapeContext& context) {
  if (integer(context, 1) < 1) not_covered(context, "an order below one");
  TensorMeta out = element_wise(context, {0}, ResultType::PromotedToFloat);
  out.strides = contiguous_strides(out.sizes);
  return {out};
}

Metas unary_to_bool(const ShapeContext& context) {
  return {element_wise(context, {0}, ResultType::Bool)};
}

Metas is_infinite(const ShapeContext& context) {
  const TensorMeta& self = context.tensor(0);
  if (is_floating(self.dtype) || is_complex(self.dtype)) return unary_to_bool(context);
  return {dense_like(context, self, DType::Bool)};  // nothing is computed
}

Metas unary_floating(const ShapeContext& context) {
  TensorMeta out = element_wise(context, {0}, ResultType::Promoted);
  return {refuse(context, out, !is_floating(out.dtype))};
}

Metas gelu(const ShapeContext& context) {
  const auto* form = std::get_if<std::string>(&context.arg(1));
  if (form == nullptr || (*form != "none" && *form != "tanh"))
    not_covered(context, "an approximation of this name");
  return unary_floating(context);
}

Metas celu(const ShapeContext& context) {
  if (real(context, 1) == 0.0) refused_by_eager(context, "an alpha of 0");
  return unary_floating(context);
}

Metas softshrink(const ShapeContext& context) {
  if (!(real(context, 1).value_or(-1) >= 0)) not_covered(context, "a threshold that is negative");
  return unary_floating(context);
}

Metas unary_integral(const ShapeContext& context) {
  TensorMeta out = element_wise(context, {0}, ResultType::Promoted);
  return {refuse(context, out, is_floating(out.dtype) || is_complex(out.dtype))};
}

Metas log_sigmoid(const ShapeContext& context) {
  const TensorMeta& self = context.tensor(0);
  if (!is_on_host(self.device)) {  // whose kernel needs no buffer
    const TensorMeta out = dense_like(context, self, self.dtype);
    return {refuse(context, out, !is_floating(self.dtype)),
            contiguous_meta(self.dtype, self.device, {Expr(0)})};
  }
  TensorMeta out = contiguous_meta(self.dtype, self.device, self.sizes);
  return {refuse(context, out, !is_floating(self.dtype)), out};
}

Metas angle_conversion(const ShapeContext& context) {
  const TensorMeta& self = context.tensor(0);
  TensorMeta out = dense_like(context, self, is_floating(self.dtype) ? self.dtype : context.default_dtype());
  return {refuse(context, out, is_complex(self.dtype))};
}

Metas fresh_preserving_number(const ShapeContext& context) {
  TensorMeta out = dense_like(context, context.tensor(0), context.tensor(0).dtype);
  return {refuse(context, out, out.dtype == DType::Bool || is_complex(out.dtype))};
}

Metas reversed_sub(const ShapeContext& context) {
  TensorMeta out = element_wise(context, {1, 0}, ResultType::Promoted);
  out.dtype = add_or_sub(context)[0].dtype;
  return {out};
}

Metas glu(const ShapeContext& context) {
  const TensorMeta& self = context.tensor(0);
  const auto dim = static_cast<size_t>(dim_argument(context, 1, self.rank()));
  if (self.rank() == 0 || !context.divisible(self.sizes[dim], 2)) not_covered(context, "an odd size");
  TensorMeta half = self;
  half.sizes[dim] = sym::floordiv(self.sizes[dim], 2);
  const TensorMeta* const operands[] = {&half, &half};
  TensorMeta out = element_wise_layout(context, operands);
  out.dtype = self.dtype;
  out.device = self.device;
  return {refuse(context, out, !is_floating(self.dtype))};
}

Metas absolute(const ShapeContext& context) {
  TensorMeta out = element_wise(context, {0}, ResultType::Promoted);
  if (out.dtype == DType::Complex64) out.dtype = DType::Float32;
  if (out.dtype == DType::Complex128) out.dtype = DType::Float64;
  return {out};
}

Metas fresh_preserving(const ShapeContext& context) {
  return {dense_like(context, context.tensor(0), context.tensor(0).dtype)};
}

Metas binary(const ShapeContext& context) {
  return {element_wise(context, {0, 1}, ResultType::Promoted)};
}

Metas binary_number(const ShapeContext& context) {
  TensorMeta out = element_wise(context, {0, 1}, ResultType::Promoted);
  return {refuse(context, out, out.dtype == DType::Bool)};
}

Metas binary_to_float(const ShapeContext& context) {
  return {element_wise(context, {0, 1}, ResultType::PromotedToFloat)};
}

Metas binary_integral(const ShapeContext& context) {
  TensorMeta out = element_wise(context, {0, 1}, ResultType::Promoted);
  return {refuse(context, out, is_floating(out.dtype) || is_complex(out.dtype))};
}

Metas comparison(const ShapeContext& context) {
  return {element_wise(context, {0, 1}, ResultType::Bool)};
}

Metas ordered_comparison(const ShapeContext& context) {
  for (size_t i : {0, 1})
    if (context.is_tensor(i) ? is_complex(context.tensor(i).dtype)
                             : std::holds_alternative<std::complex<double>>(context.arg(i)))
      not_covered(context, "an order of complex numbers");
  return comparison(context);
}

Metas logical_binary(const ShapeContext& context) {
  return comparison(context);
}

Metas add_or_sub(const ShapeContext& context) {
  TensorMeta out = element_wise(context, {0, 1}, ResultType::Promoted);
  const graph::Argument& alpha = context.arg(2);
  const bool is_sub = context.schema().name.find("sub") != std::string::npos;
  if (is_sub) {  // eager refuses Bool operands even where the result is none
    for (size_t i : {0, 1})
      refuse(context, out,
             context.is_tensor(i) ? context.tensor(i).dtype == DType::Bool
                                  : std::holds_alternative<bool>(context.arg(i)));
  }
  if (std::holds_alternative<bool>(alpha)) refuse(context, out, out.dtype != DType::Bool);
  if (std::holds_alternative<double>(alpha))
    refuse(context, out, !is_floating(out.dtype) && !is_complex(out.dtype));
  if (std::holds_alternative<std::complex<double>>(alpha)) refuse(context, out, !is_complex(out.dtype));
  return {out};
}

Metas rounded_division(const ShapeContext& context) {
  if (context.is_none(2)) return binary_to_float(context);
  const auto* mode = std::get_if<std::string>(&context.arg(2));
  if (mode == nullptr || (*mode != "floor" && *mode != "trunc"))
    refused_by_eager(context, "an unknown rounding mode");
  return binary_number(context);
}

Metas power(const ShapeContext& context) {
  TensorMeta out = element_wise(context, {0, 1}, ResultType::Promoted);
  return {out};
}

Metas number_to_power(const ShapeContext& context) {
  Promotion promotion(context.default_dtype());
  promotion.add_number(context.arg(0));
  promotion.add_tensor(context.tensor(1));
  return {contiguous_meta(promotion.result(), context.tensor(1).device, context.tensor(1).sizes)};
}

Metas binary_of_one_type(const ShapeContext& context) {
  TensorMeta out = element_wise(context, {0, 1}, ResultType::Promoted);
  return {refuse(context, out, context.tensor(0).dtype != context.tensor(1).dtype)};
}

Metas power_of_number(const ShapeContext& context) {
  TensorMeta out = element_wise_like(context, 0, {1}, ResultType::Promoted);
  const auto* exponent = std::get_if<Expr>(&context.arg(1));
  if (is_integral(out.dtype) && exponent != nullptr && context.less(*exponent, 0))
    not_covered(context, "an integer to a negative power");
  return {out};
}

Metas ternary(const ShapeContext& context) {
  return {element_wise(context, {0, 1, 2}, ResultType::Promoted)};
}

Metas add_quotient(const ShapeContext& context) {
  TensorMeta out = element_wise(context, {0, 1, 2}, ResultType::Promoted);
  const auto is_whole = [&](size_t i) {
    return !is_floating(context.tensor(i).dtype) && !is_complex(context.tensor(i).dtype);
  };
  return {refuse(context, out, is_whole(1) && is_whole(2))};
}

Metas clamp_numbers(const ShapeContext& context) {
  TensorMeta out = context.size() > 2 ? element_wise_like(context, 0, {1, 2}, ResultType::Promoted)
                                      : element_wise_like(context, 0, {1}, ResultType::Promoted);
  if (context.size() > 2 && context.is_none(1) && context.is_none(2)) refused_by_eager(context, "no bounds");
  return {refuse(context, out, is_complex(out.dtype) || context.tensor(0).dtype == DType::Bool)};
}

Metas clamp_tensors(const ShapeContext& context) {
  if (context.size() > 2 && context.is_none(1) && context.is_none(2)) refused_by_eager(context, "no bounds");
  TensorMeta out = context.size() > 2 ? element_wise(context, {0, 1, 2}, ResultType::Promoted)
                                      : element_wise(context, {0, 1}, ResultType::Promoted);
  return {refuse(context, out, is_complex(out.dtype) || out.dtype == DType::Bool)};
}

Metas interpolate(const ShapeContext& context) {
  const DType dtype = context.tensor(0).dtype;
  bool mixed = context.tensor(1).dtype != dtype;
  TensorMeta out;
  if (context.is_tensor(2)) {
    mixed |= context.tensor(2).dtype != dtype;
    out = element_wise(context, {0, 1, 2}, ResultType::Promoted);
  } else {
    out = element_wise(context, {0, 1}, ResultType::Promoted);
  }
  return {refuse(context, out, mixed || (!is_floating(dtype) && !is_complex(dtype)))};
}

Metas where(const ShapeContext& context) {
  const TensorMeta& condition = context.tensor(0);
  if (condition.dtype != DType::Bool) not_covered(context, "a condition that is not Bool");
  Promotion promotion(context.default_dtype());
  std::vector<TensorMeta> converted;
  converted.reserve(2);
  const TensorMeta* operands[3] = {&condition};
  for (size_t i : {1, 2}) {
    if (context.is_tensor(i)) {
      promotion.add_tensor(context.tensor(i));
    } else {
      promotion.add_number(context.arg(i));
    }
  }
  const DType dtype = promotion.result();
  static const TensorMeta number;
  for (size_t i : {1, 2}) {
    const TensorMeta& meta = context.is_tensor(i) ? context.tensor(i) : number;
    operands[i] = &meta;
    if (meta.dtype == dtype || meta.sizes.empty() || is_non_overlapping_and_dense(meta)) continue;
    operands[i] = &converted.emplace_back(dense_like(context, meta, dtype));
  }
  TensorMeta out = element_wise_layout(context, operands);
  out.dtype = dtype;
  out.device = common_device(operands);
  return {out};
}

Metas masked_fill(const ShapeContext& context) {
  const TensorMeta& self = context.tensor(0);
  if (context.tensor(1).dtype != DType::Bool) not_covered(context, "a mask that is not Bool");
  if (context.is_tensor(2) && context.tensor(2).rank() > 0) not_covered(context, "a value with dimensions");
  const TensorMeta* const operands[] = {&context.tensor(1), &self};
  return {contiguous_meta(self.dtype, self.device, broadcast(context, operands))};
}

Metas prelu(const ShapeContext& context) {
  const TensorMeta& self = context.tensor(0);
  const TensorMeta& weight = context.tensor(1);
  if (self.dtype != weight.dtype || !broadcasts_to(context, weight.sizes, self.sizes))
    not_covered(context, "a weight of another type or shape");
  return {dense_like(context, self, self.dtype)};
}

namespace {

TensorMeta gradient_of(const ShapeContext& context, size_t first, size_t second) {
  TensorMeta out = element_wise(context, {first, second}, ResultType::Promoted);
  return refuse(context, out, context.tensor(first).dtype != context.tensor(second).dtype);
}

}  // namespace

Metas gradient(const ShapeContext& context) {
  size_t saved = 1;
  while (saved + 1 < context.size() && !context.is_tensor(saved)) ++saved;
  return {gradient_of(context, 0, saved)};
}

Metas gradient_of_saved(const ShapeContext& context) {
  return {gradient_of(context, 1, 0)};
}

Metas angle(const ShapeContext& context) {
  const TensorMeta& self = context.tensor(0);
  if (!is_complex(self.dtype)) return unary_to_float(context);
  const DType dtype = self.dtype == DType::Complex64 ? DType::Float32 : DType::Float64;
  return {contiguous_meta(dtype, self.device, self.sizes)};
}

Metas ldexp(const ShapeContext& context) {
  // self * 2.0 ** other
  const TensorMeta& self = context.tensor(0);
  Promotion of_power(context.default_dtype());
  of_power.add_number(2.0);
  of_power.add_tensor(context.tensor(1));
  const TensorMeta power =
      contiguous_meta(of_power.result(), context.tensor(1).device, context.tensor(1).sizes);
  // Some releases take the power of an integer in the type of `self`, and follow the order of its strides
  // there and where `self` is in half precision.
  const bool has_integers = is_floating(self.dtype) && !is_floating(context.tensor(1).dtype);
  const bool is_half = self.dtype == DType::Float16 || self.dtype == DType::BFloat16;
  if (has_integers && power.dtype != self.dtype) not_covered(context, "integers with elements of this type");
  if ((has_integers || is_half) && !is_contiguous(context.tensor(1)))
    not_covered(context, "an exponent that is not contiguous");
  Promotion promotion(context.default_dtype());
  promotion.add_tensor(self);
  promotion.add_tensor(power);
  const TensorMeta* const operands[] = {&self, &power};
  TensorMeta out = element_wise_layout(context, operands);
  out.dtype = promotion.result();
  out.device = self.rank() == 0 ? power.device : self.device;
  return {out};
}

Metas mantissa_and_exponent(const ShapeContext& context) {
  const TensorMeta& self = context.tensor(0);
  if (!is_floating(self.dtype)) not_covered(context, "an operand of this type");
  TensorMeta mantissa = dense_like(context, self, self.dtype);
  TensorMeta exponent = mantissa;
  exponent.dtype = DType::Int32;
  return {mantissa, exponent};
}

Metas prelu_backward(const ShapeContext& context) {
  const TensorMeta& self = context.tensor(1);
  for (const size_t i : {0, 2})
    if (context.tensor(i).dtype != self.dtype || !broadcasts_to(context, context.tensor(i).sizes, self.sizes))
      not_covered(context, "operands of another type or shape");
  TensorMeta out = element_wise(context, {1, 2, 0}, ResultType::Promoted);
  return {out, out};
}

Metas glu_backward(const ShapeContext& context) {
  const TensorMeta& self = context.tensor(1);
  dim_argument(context, 2, self.rank());
  return {contiguous_meta(self.dtype, self.device, self.sizes)};
}

Metas distance(const ShapeContext& context) {
  const TensorMeta difference = element_wise(context, {0, 1}, ResultType::Promoted);
  if (!is_floating(difference.dtype) || !real(context, 2)) not_covered(context, "operands of this type");
  if (!(*real(context, 2) >= 0 && std::isfinite(*real(context, 2))))
    for (const Expr& size : difference.sizes)
      if (context.equal(size, 0)) not_covered(context, "a dimension without elements");
  return {contiguous_meta(difference.dtype, difference.device, {})};
}

}  // namespace oxy::ops::shapes
