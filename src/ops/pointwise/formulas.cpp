// The elements of element-wise operators.
#include <cmath>
#include <limits>

#include "ops/pointwise/lowerings.h"

namespace oxy::ops::lowerings::formulas {

using loop::Op;

namespace {
Value unary(Op op, Value x) {
  return x.builder->unary(op, x);
}
Value zero(Value like) {
  return like.builder->constant(0.0, like.dtype);
}
Value is_nan(Value x) {
  return unary(Op::IsNan, x);
}
}  // namespace

Value relu(Values v) {
  return maximum(v[0], 0);
}
Value relu6(Values v) {
  return minimum(maximum(v[0], 0), 6);
}
Value silu(Values v) {
  return v[0] * sigmoid(v[0]);
}
Value hardswish(Values v) {
  return v[0] * minimum(maximum(v[0] + 3, 0), 6) / 6;
}
Value hardsigmoid(Values v) {
  return minimum(maximum(v[0] + 3, 0), 6) / 6;
}

Value hardtanh(Values v) {
  Value x = v[0];
  if (v.size() > 1 && v[1].builder != nullptr) x = maximum(v[1], x);
  if (v.size() > 2 && v[2].builder != nullptr) x = minimum(v[2], x);
  return x;
}

Value clamp_max(Values v) {
  return minimum(v[1], v[0]);
}
Value leaky_relu(Values v) {
  return where(v[0] > 0, v[0], v[0] * v[1]);
}

Value elu(Values v) {
  Value x = v[0];
  Value negative = unary(Op::Expm1, x * v[3]) * (v[1] * v[2]);
  return where(x < 0, negative, x * v[2]);
}

Value softplus(Values v) {
  Value scaled = v[0] * v[1];
  return where(scaled > v[2], v[0], unary(Op::Log1p, exp(scaled)) / v[1]);
}

Value mish(Values v) {
  return v[0] * tanh(unary(Op::Log1p, exp(v[0])));
}
Value threshold(Values v) {
  return where(v[0] <= v[1], v[2], v[0]);
}
Value hardshrink(Values v) {
  return where((v[0] >= -v[1]) & (v[0] <= v[1]), zero(v[0]), v[0]);
}

Value softshrink(Values v) {
  return where(v[0] > v[1], v[0] - v[1], where(v[0] < -v[1], v[0] + v[1], abs(v[0] * 0)));
}

Value selu(Values v) {
  constexpr double kAlpha = 1.6732632423543772848170429916717;
  constexpr double kScale = 1.0507009873554804934193349852946;
  return where(v[0] <= 0, unary(Op::Expm1, v[0]) * (kAlpha * kScale), v[0] * kScale);
}

Value celu(Values v) {
  return where(v[0] < 0, unary(Op::Expm1, v[0] / v[1]) * v[1], v[0]);
}

Value logit(Values v) {
  Value x = v[0];
  // Of limits in the wrong order, the lower one goes first.
  if (v[1].builder != nullptr) x = where(x < v[1], v[1], minimum(x, 1 - v[1]));
  return log(x / (1 - x));
}

Value deg2rad(Values v) {
  return v[0] * (M_PI / 180);
}
Value rad2deg(Values v) {
  return v[0] * (180 / M_PI);
}
Value frac(Values v) {
  return v[0] - unary(Op::Trunc, v[0]);
}
Value sgn(Values v) {
  return v[0].dtype == DType::Bool ? v[0] : unary(Op::Sign, v[0]);
}
Value add_product(Value a, Value b, Value c) {
  return is_floating(a.dtype) ? a.builder->fma(b, c, a) : a + b * c;
}
Value addcmul(Values v) {
  return add_product(v[0], v[3] * v[1], v[2]);
}
Value addcdiv(Values v) {
  return v[0] + v[3] * v[1] / v[2];
}

Value lerp(Values v) {
  // Exact at both ends: start from the nearer one.
  Value difference = v[1] - v[0];
  return where(abs(v[2]) < 0.5, v[0] + v[2] * difference, v[1] - difference * (1 - v[2]));
}

Value fmax(Values v) {
  if (!is_floating(v[0].dtype)) return maximum(v[0], v[1]);
  return where(is_nan(v[0]), v[1], where(is_nan(v[1]), v[0], maximum(v[0], v[1])));
}

Value fmin(Values v) {
  if (!is_floating(v[0].dtype)) return minimum(v[0], v[1]);
  return where(is_nan(v[0]), v[1], where(is_nan(v[1]), v[0], minimum(v[0], v[1])));
}

Value square(Values v) {
  return v[0] * v[0];
}

Value nan_to_num(Values v) {
  Value x = v[0];
  if (!is_floating(x.dtype)) return x;
  double largest = x.dtype == DType::Float64 ? std::numeric_limits<double>::max()
                                             : static_cast<double>(std::numeric_limits<float>::max());
  auto or_else = [&](size_t i, double value) {
    return v[i].builder ? v[i] : x.builder->constant(value, x.dtype);
  };
  Value result = where(is_nan(x), or_else(1, 0), x);
  result = where(x == x.builder->constant(INFINITY, x.dtype), or_else(2, largest), result);
  return where(x == x.builder->constant(-INFINITY, x.dtype), or_else(3, -largest), result);
}

Value logaddexp(Values v) {
  Value top = maximum(v[0], v[1]);
  Value equal_infinities = (v[0] == v[1]) & unary(Op::IsInf, v[0]);
  return where(equal_infinities, v[0], top + unary(Op::Log1p, exp(-abs(v[0] - v[1]))));
}

Value hypot(Values v) {
  Value a = abs(v[0]);
  Value b = abs(v[1]);
  Value large = maximum(a, b);
  Value ratio = minimum(a, b) / large;
  Value length = large * sqrt(ratio * ratio + 1);
  Value degenerate = (large == zero(large)) | unary(Op::IsInf, large);
  // Infinite whatever the other is, a NaN too.
  Value infinite = unary(Op::IsInf, a) | unary(Op::IsInf, b);
  return where(infinite, a.builder->constant(INFINITY, a.dtype), where(degenerate, large, length));
}

Value sigmoid_backward(Values v) {
  return v[0] * (1 - v[1]) * v[1];
}
Value tanh_backward(Values v) {
  return v[0] * (1 - v[1] * v[1]);
}

Value silu_backward(Values v) {
  Value s = sigmoid(v[1]);
  return v[0] * s * (v[1] * (1 - s) + 1);
}

Value threshold_backward(Values v) {
  return where(v[1] <= v[2], zero(v[0]), v[0]);
}
Value hardtanh_backward(Values v) {
  return where((v[1] > v[2]) & (v[1] < v[3]), v[0], zero(v[0]));
}
Value hardsigmoid_backward(Values v) {
  return where((v[1] > -3) & (v[1] < 3), v[0] / 6, zero(v[0]));
}

Value hardswish_backward(Values v) {
  return where(v[1] <= -3, zero(v[0]), where(v[1] >= 3, v[0], v[0] * (v[1] / 3 + 0.5)));
}

Value leaky_relu_backward(Values v) {
  return where(v[1] > 0, v[0], v[0] * v[2]);
}

Value logical_and(Values v) {
  return v[0] & v[1];
}
Value logical_or(Values v) {
  return v[0] | v[1];
}
Value logical_xor(Values v) {
  return v[0].builder->binary(Op::BitXor, v[0], v[1]);
}
Value logical_not(Values v) {
  return !v[0];
}

}  // namespace oxy::ops::lowerings::formulas
