// Lowerings of element-wise operators. A formula computes one element in the compute type of the result;
// operands (tensors and plain numbers alike) are converted to it first. What a result of half precision is
// made of has that precision, too, but for numbers that eager's kernels read as they are.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>

#include "loop/builder.h"
#include "ops/core/registry.h"

namespace oxy::ops::lowerings {

using Formula = loop::Value (*)(std::span<const loop::Value>);

// Which operands of another type eager reads in the precision of its calculation, where a result of half
// precision is made of them. It converts the others to the type of the result first.
enum class Exact : uint8_t {
  None,
  SecondScalar,  // the second operand, if it is a number or a tensor without dimensions
  Numbers,
  HostScalars,       // numbers, and tensors without dimensions that the host gives to a kernel
  SecondHostScalar,  // the second operand, if it is one of these
};

// The operands at these argument positions in the result's type through `formula`; None becomes a missing
// Value (builder == nullptr). `work`: the formula's instructions, about. `on_gpus`: where eager's kernels for
// GPUs round others than those for the CPU.
Lowering formula(std::initializer_list<size_t> operands, Formula formula, int work = 1,
                 Exact exact = Exact::Numbers, std::optional<Exact> on_gpus = std::nullopt);
// The same for operands that bound the values (clamp); not lowered where an integer type cannot hold a bound.
Lowering limited(std::initializer_list<size_t> operands, Formula formula, int work);
Lowering unary(loop::Op op, int work = 1);
Lowering binary(loop::Op op, int work = 1);
Lowering comparison(loop::Op op);                        // operands promoted among themselves
Lowering test(loop::Op op);                              // IsNan, IsInf: false for integers
Lowering logical(Formula formula, size_t operands = 2);  // operands as Bool
using loop::LoweringContext;

void add(LoweringContext& context, const graph::Node& node);
void sub(LoweringContext& context, const graph::Node& node);
void rsub(LoweringContext& context, const graph::Node& node);
void mul(LoweringContext& context, const graph::Node& node);
void div(LoweringContext& context, const graph::Node& node);
void div_mode(LoweringContext& context, const graph::Node& node);
void floor_divide(LoweringContext& context, const graph::Node& node);
void remainder(LoweringContext& context, const graph::Node& node);
void fmod(LoweringContext& context, const graph::Node& node);
void pow(LoweringContext& context, const graph::Node& node);  // both operands tensors or numbers
void softshrink(LoweringContext& context, const graph::Node& node);
void xlogy(LoweringContext& context, const graph::Node& node);
void gelu(LoweringContext& context, const graph::Node& node);
void gelu_backward(LoweringContext& context, const graph::Node& node);
void round_decimals(LoweringContext& context, const graph::Node& node);
void where(LoweringContext& context, const graph::Node& node);
void masked_fill(LoweringContext& context, const graph::Node& node);
void log_sigmoid(LoweringContext& context, const graph::Node& node);  // log_sigmoid_forward
void prelu(LoweringContext& context, const graph::Node& node);
void glu(LoweringContext& context, const graph::Node& node);
void to_copy(LoweringContext& context,
             const graph::Node& node);  // also prims-like casts: argument 0 to the result's type
void clone(LoweringContext& context, const graph::Node& node);
void as_stored(LoweringContext& context, const graph::Node& node);
void copy(LoweringContext& context, const graph::Node& node);      // argument 1, converted and broadcast
void identity(LoweringContext& context, const graph::Node& node);  // argument 0 as it is

namespace formulas {
using loop::Value;
using Values = std::span<const Value>;
// a + b * c. Eager's kernels are compiled to fused instructions: a product of floating point numbers that is
// added to a number is not rounded, nor does it overflow.
Value add_product(Value a, Value b, Value c);
// Named after their operators.
Value relu(Values v);
Value relu6(Values v);
Value silu(Values v);
Value hardswish(Values v);
Value hardsigmoid(Values v);
Value hardtanh(Values v);  // x, minimum, maximum; also clamp with either missing
Value clamp_max(Values v);
Value leaky_relu(Values v);  // x, slope
Value elu(Values v);         // x, alpha, scale, input scale
Value softplus(Values v);    // x, beta, threshold
Value mish(Values v);
Value threshold(Values v);   // x, threshold, value
Value hardshrink(Values v);  // x, lambda
Value softshrink(Values v);
Value frac(Values v);
Value selu(Values v);
Value celu(Values v);   // x, alpha
Value logit(Values v);  // x, eps or missing
Value deg2rad(Values v);
Value rad2deg(Values v);
Value sgn(Values v);
Value addcmul(Values v);  // x, a, b, value
Value addcdiv(Values v);
Value lerp(Values v);  // a, b, weight
Value fmax(Values v);
Value fmin(Values v);
Value square(Values v);
Value nan_to_num(Values v);  // x, nan, +inf, -inf
Value logaddexp(Values v);
Value hypot(Values v);
// Gradients: grad first unless told.
Value sigmoid_backward(Values v);      // grad, output
Value tanh_backward(Values v);         // grad, output
Value silu_backward(Values v);         // grad, x
Value threshold_backward(Values v);    // grad, x, threshold
Value hardtanh_backward(Values v);     // grad, x, minimum, maximum
Value hardsigmoid_backward(Values v);  // grad, x
Value hardswish_backward(Values v);    // grad, x
Value leaky_relu_backward(Values v);   // grad, x, slope
Value logical_and(Values v);
Value logical_or(Values v);
Value logical_xor(Values v);
Value logical_not(Values v);
}  // namespace formulas

}  // namespace oxy::ops::lowerings
