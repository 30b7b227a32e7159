#include "ops/pointwise/decompositions.h"

#include <limits>

#include "base/error.h"

namespace oxy::ops::decompositions {

using graph::Argument;
using graph::ValueRef;

// Whether an element is above the threshold is all that a backward pass needs of it.
std::vector<ValueRef> threshold_backward(Composer& c) {
  // (grad_output, self, threshold): eager compares with the number itself, which a half may not hold
  if (c.real(2) != 0.0) throw Unsupported("a threshold other than 0");
  const ValueRef is_cut = c.call("aten::le.Scalar", {c.arg(1), c.arg(2)});
  return {c.call("aten::masked_fill.Scalar", {c.arg(0), is_cut, 0.0})};
}

std::vector<ValueRef> leaky_relu_backward(Composer& c) {
  // (grad_output, self, negative_slope, self_is_result): the sign of the result is that of the input, too
  const ValueRef scaled = c.call("aten::mul.Tensor", {c.arg(0), c.real(2)});
  return {c.call("aten::where.self", {c.call("aten::gt.Scalar", {c.arg(1), Expr(0)}), c.arg(0), scaled})};
}

// Without the buffer, which is exp(-|self|) on the host and empty on other devices.
std::vector<ValueRef> log_sigmoid_backward(Composer& c) {
  // (grad_output, self, buffer)
  return {c.call("aten::mul.Tensor", {c.arg(0), c.call("aten::sigmoid", {c.call("aten::neg", {c.arg(1)})})})};
}

std::vector<ValueRef> nan_to_num(Composer& c) {
  constexpr double kLargestFloat16 = 65504, kLargestBFloat16 = 3.3895313892515355e38;
  const DType dtype = c.result().dtype;
  if (dtype != DType::Float16 && dtype != DType::BFloat16) throw Unsupported("kernels know the limits");
  if (!c.is_none(1) && !c.is_none(2) && !c.is_none(3)) throw Unsupported("the numbers are given");
  const double largest = dtype == DType::Float16 ? kLargestFloat16 : kLargestBFloat16;
  const auto given_or = [&](size_t i, double value) { return c.is_none(i) ? value : c.real(i); };
  return {
      c.call("aten::nan_to_num", {c.arg(0), given_or(1, 0.0), given_or(2, largest), given_or(3, -largest)})};
}

namespace {

std::vector<ValueRef> equals_infinity(Composer& c, double infinity) {
  if (!is_floating(c.meta(c.arg(0)).dtype)) throw Unsupported("numbers that are never infinite");
  return {c.call("aten::eq.Scalar", {c.arg(0), infinity})};
}

}  // namespace

std::vector<ValueRef> is_positive_infinity(Composer& c) {
  return equals_infinity(c, std::numeric_limits<double>::infinity());
}

std::vector<ValueRef> is_negative_infinity(Composer& c) {
  return equals_infinity(c, -std::numeric_limits<double>::infinity());
}

std::vector<ValueRef> ldexp(Composer& c) {
  const ValueRef power = c.call("aten::pow.Scalar", {2.0, c.arg(1)});
  const DType type = c.meta(c.arg(0)).dtype;
  if (is_floating(type) && !is_floating(c.meta(c.arg(1)).dtype) && c.meta(power).dtype != type)
    throw Unsupported("integers with elements of this type");
  return {c.call("aten::mul.Tensor", {c.arg(0), power})};
}

std::vector<ValueRef> dist(Composer& c) {
  return {c.call("aten::linalg_vector_norm", {c.call("aten::sub.Tensor", {c.arg(0), c.arg(1)}), c.arg(2)})};
}

}  // namespace oxy::ops::decompositions
