// The operators that passes build nodes of.
#pragma once

#include "aten/schema.h"

namespace oxy::passes::op {

// Each interns torch's own schema at the first call.
const OperatorSchema* view();        // (self, size)
const OperatorSchema* permute();     // (self, dims)
const OperatorSchema* slice();       // (self, dim, start, end, step)
const OperatorSchema* select();      // (self, dim, index)
const OperatorSchema* as_strided();  // (self, size, stride, storage_offset)
const OperatorSchema* clone();       // (self, memory_format)
const OperatorSchema* to_copy();     // (self, dtype, layout, device, pin_memory, non_blocking, memory_format)
const OperatorSchema* add();         // (self, other, alpha)
const OperatorSchema* sub();         // (self, other, alpha)
const OperatorSchema* mul();         // (self, other)
const OperatorSchema* rsqrt();       // (self)
const OperatorSchema* neg();         // (self)
const OperatorSchema* cat();         // (tensors, dim)
const OperatorSchema* mm();          // (self, mat2)
const OperatorSchema* addmm();       // (self, mat1, mat2, beta, alpha)
const OperatorSchema* index_put();   // (self, indices, values, accumulate)
const OperatorSchema* full();        // (size, fill_value, dtype, layout, device, pin_memory)

// The weight of a linear layer, [out_features, in_features], laid out for packed_linear. The result is
// opaque: only packed_linear can read it. `rows` is the product of the other sizes of x, 0 if it varies.
const OperatorSchema* pack_linear();  // (weight, rows)
// activation(x @ weight.t() + bias + residual) over the last dimension of x; activation is "none" or the name
// of an ATen operator ("relu", "gelu", "gelu_tanh", "silu", ...).
const OperatorSchema* packed_linear();  // (x, packed, bias, activation, residual)
// The weight of a convolution laid out for packed_convolution, for inputs of this size.
const OperatorSchema* pack_convolution();  // (weight, input_size, stride, padding, dilation, groups)
// activation(convolution(x) + bias + residual); x, residual and the result have the same memory layout.
const OperatorSchema*
packed_convolution();  // (x, packed, bias, stride, padding, dilation, groups, activation, residual)

}  // namespace oxy::passes::op
