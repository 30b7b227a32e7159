// Shape rules of element-wise operators.
#pragma once

#include "ops/core/shape_arguments.h"

namespace oxy::ops::shapes {

// One operand, argument 0.
Metas unary(const ShapeContext& context);               // keeps the type
Metas unary_number(const ShapeContext& context);        // keeps the type, no Bool
Metas unary_to_float(const ShapeContext& context);      // integers and Bool become the default dtype
Metas multivariate_gamma(const ShapeContext& context);  // mvlgamma(self, p): a sum of p terms
Metas second_to_float(const ShapeContext& context);     // the same for argument 1
Metas unary_to_bool(const ShapeContext& context);       // tests each element
Metas is_infinite(const ShapeContext& context);         // isinf
Metas unary_floating(const ShapeContext& context);      // real floating types only
Metas absolute(const ShapeContext& context);            // complex becomes its real type
Metas fresh_preserving(const ShapeContext& context);    // keeps type and memory order whatever the operator

Metas gelu(const ShapeContext& context);
Metas celu(const ShapeContext& context);
Metas softshrink(const ShapeContext& context);
Metas unary_integral(const ShapeContext& context);    // bitwise_not: integers and Bool
Metas log_sigmoid(const ShapeContext& context);       // result and a buffer for the gradient
Metas angle_conversion(const ShapeContext& context);  // deg2rad, rad2deg
Metas glu(const ShapeContext& context);               // (self, dim): halves that dimension

Metas fresh_preserving_number(const ShapeContext& context);  // the same without Bool

// Operands 0 and 1.
Metas binary(const ShapeContext& context);
Metas binary_number(const ShapeContext& context);  // no Bool result
Metas binary_to_float(const ShapeContext& context);
Metas binary_integral(const ShapeContext& context);     // bit operations: integers and Bool
Metas comparison(const ShapeContext& context);          // of promoted operands, result Bool
Metas ordered_comparison(const ShapeContext& context);  // the same without complex numbers
Metas logical_binary(const ShapeContext& context);
Metas add_or_sub(const ShapeContext& context);        // minding the type of alpha, argument 2
Metas reversed_sub(const ShapeContext& context);      // rsub: the operands are 1 and 0
Metas rounded_division(const ShapeContext& context);  // div.Tensor_mode: argument 2 is the mode
Metas power(const ShapeContext& context);
Metas number_to_power(const ShapeContext& context);     // pow.Scalar
Metas binary_of_one_type(const ShapeContext& context);  // heaviside
Metas power_of_number(const ShapeContext& context);     // pow.Tensor_Scalar

// Three or more.
Metas ternary(const ShapeContext& context);        // operands 0, 1 and 2
Metas add_quotient(const ShapeContext& context);   // addcdiv: no integers
Metas clamp_numbers(const ShapeContext& context);  // clamp, clamp_min, clamp_max with numbers
Metas clamp_tensors(const ShapeContext& context);
Metas interpolate(const ShapeContext& context);  // lerp: operands 0, 1 and a weight
Metas where(const ShapeContext& context);
Metas masked_fill(const ShapeContext& context);
Metas prelu(const ShapeContext& context);

Metas gradient_of_saved(const ShapeContext& context);  // the same where the saved tensor decides the layout
Metas gradient(const ShapeContext& context);           // of the incoming gradient and one saved tensor

Metas angle(const ShapeContext& context);  // real for complex numbers
Metas ldexp(const ShapeContext& context);
Metas mantissa_and_exponent(const ShapeContext& context);
Metas prelu_backward(const ShapeContext& context);
Metas glu_backward(const ShapeContext& context);
Metas distance(const ShapeContext& context);

}  // namespace oxy::ops::shapes
