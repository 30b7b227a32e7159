// The operators that stages name: for rules that are about one operator, and to build nodes of. What holds
// for more than one operator is a trait (ops/core/traits.h).
//
// Each function interns the operator's schema at its first call and returns the same pointer ever after, so
// that `node.op == op::view()` is the question whether a node is a view.
#pragma once

#include "aten/schema.h"

namespace oxy::op {

// Views.
const OperatorSchema* alias();            // (self)
const OperatorSchema* detach();           // (self)
const OperatorSchema* view();             // (self, size)
const OperatorSchema* view_dtype();       // (self, dtype)
const OperatorSchema* view_as_real();     // (self)
const OperatorSchema* view_as_complex();  // (self)
const OperatorSchema* expand();           // (self, size, implicit)
const OperatorSchema* permute();          // (self, dims)
const OperatorSchema* transpose();        // (self, dim0, dim1)
const OperatorSchema* slice();            // (self, dim, start, end, step)
const OperatorSchema* select();           // (self, dim, index)
const OperatorSchema* as_strided();       // (self, size, stride, storage_offset)

// A tensor with another in the place of such a view of it.
const OperatorSchema* slice_scatter();       // (self, src, dim, start, end, step)
const OperatorSchema* select_scatter();      // (self, src, dim, index)
const OperatorSchema* diagonal_scatter();    // (self, src, offset, dim1, dim2)
const OperatorSchema* as_strided_scatter();  // (self, src, size, stride, storage_offset)

// New tensors and moved elements.
const OperatorSchema* masked_select();
const OperatorSchema* clone();        // (self, memory_format)
const OperatorSchema* flip();         // (self, dims)
const OperatorSchema* unsafe_view();  // (self, size)
const OperatorSchema* copy();         // (self, src, non_blocking)
const OperatorSchema* to_copy();  // (self, dtype, layout, device, pin_memory, non_blocking, memory_format)
// oxyfuel::softmax_rows: (self, dim) to the maximum m of each row and the sum of exp(element - m).
const OperatorSchema* softmax_rows();
const OperatorSchema* full();          // (size, fill_value, dtype, layout, device, pin_memory)
const OperatorSchema* cat();           // (tensors, dim)
const OperatorSchema* index_put();     // (self, indices, values, accumulate)
const OperatorSchema* scatter();       // scatter.src: (self, dim, index, src)
const OperatorSchema* constant_pad();  // (self, pad, value)
// embedding_dense_backward: (grad_output, indices, num_weights, padding_idx, scale_grad_by_freq)
const OperatorSchema* embedding_gradient();

// Arithmetic.
const OperatorSchema* add();             // (self, other, alpha)
const OperatorSchema* sub();             // (self, other, alpha)
const OperatorSchema* mul();             // (self, other)
const OperatorSchema* div();             // (self, other)
const OperatorSchema* mul_by_number();   // (self, number)
const OperatorSchema* div_by_number();   // (self, number)
const OperatorSchema* pow_scalar();      // (self, exponent)
const OperatorSchema* rsqrt();           // (self)
const OperatorSchema* exp();             // (self)
const OperatorSchema* log();             // (self)
const OperatorSchema* neg();             // (self)
const OperatorSchema* tanh();            // (self)
const OperatorSchema* erf();             // (self)
const OperatorSchema* sigmoid();         // (self)
const OperatorSchema* silu();            // (self)
const OperatorSchema* gelu();            // (self, approximate)
const OperatorSchema* native_dropout();  // (input, p, train)
// Dropout with eager's numbers in kernels of our own (passes/random/draw_in_kernels.h). philox_states draws
// for several of them: (counts, threads, device) -> int64 of the seed and a counter for each.
const OperatorSchema* philox_states();
// Which elements a dropout keeps: (states, place, p, width, threads, dtype, sizes, strides) -> bool. `dtype`:
// that of the elements; `place`: of its counter among those of `states`.
const OperatorSchema* philox_mask();
const OperatorSchema* scale_kept();        // The dropout's result: (input, mask, p)
const OperatorSchema* sum_over();          // sum.dim_IntList: (self, dims, keepdim, dtype)
const OperatorSchema* mm();                // (self, mat2)
const OperatorSchema* mm_dtype();          // (self, mat2, out_dtype)
const OperatorSchema* vector_product();    // (row, matrix): of our own
const OperatorSchema* addmm();             // (self, mat1, mat2, beta, alpha)
const OperatorSchema* addmm_activation();  // the same, and use_gelu: gelu of the tanh kind, or relu

// What attention is written with, beside those above.
const OperatorSchema* bmm();      // (self, mat2)
const OperatorSchema* softmax();  // _softmax: (self, dim, half_to_float)
// Attention on GPUs: (query, key, value, ...) of [batch, heads, rows, width].
const OperatorSchema* flash_attention();
const OperatorSchema* cudnn_attention();          // a bias of the scores behind the value
const OperatorSchema* where();                    // (condition, self, other)
const OperatorSchema* masked_fill();              // (self, mask, value)
const OperatorSchema* masked_fill_with_tensor();  // (self, mask, value)
const OperatorSchema* equal_to_number();          // (self, number)
const OperatorSchema* greater_than_number();      // (self, number)

// (input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)
const OperatorSchema* convolution();
// The same behind grad_output, with bias_sizes for the bias, and output_mask at the end.
const OperatorSchema* convolution_backward();
// (input, weight, stride, padding, dilation, memory_format): of our own
const OperatorSchema* depthwise_convolution();
// native_batch_norm: (input, weight, bias, running_mean, running_var, training, momentum, eps)
const OperatorSchema* batch_norm();
// _native_batch_norm_legit_no_training: the same without `training`.
const OperatorSchema* batch_norm_evaluation();

// Operators that write their first argument: copy_, fill_.Scalar, fill_.Tensor, zero_, bernoulli_.float.
const OperatorSchema* copy_into();         // (self, src, non_blocking)
const OperatorSchema* fill_with_number();  // (self, value)
const OperatorSchema* fill_with_tensor();  // (self, value)
const OperatorSchema* zero_out();          // (self)
const OperatorSchema* bernoulli_into();    // (self, p, generator)

const OperatorSchema* is_pinned();  // (self, device)

// Operators of our own, which are in no graph that a program records.
//
// The gradient of `self` that is complete, for the backward pass to go on from (passes/training).
const OperatorSchema* total();  // (self, tangent)
// For the host, between stages (passes/staging/index_checks.h): (index, size, dim, counts_back, ignored,
// elements, is_left_to_eager, where). Without elements nothing is checked.
const OperatorSchema* check_indices();
// The weight of a linear layer, [out_features, in_features], laid out for packed_linear. The result is
// opaque: only packed_linear can read it. `rows` is the product of the other sizes of x, 0 if it varies.
const OperatorSchema* pack_linear();  // (weight, rows)
// activation(x @ weight.t() + bias + residual) over the last dimension of x; activation is "none" or the name
// of an ATen operator ("relu", "gelu", "gelu_tanh", "silu", ...).
const OperatorSchema* packed_linear();  // (x, packed, bias, activation, residual)
// The weight of a convolution laid out for packed_convolution, for inputs of this size.
const OperatorSchema* pack_convolution();  // (weight, input_size, stride, padding, dilation, groups)
// activation(convolution(x) + bias + residual); x, residual and the result have the same memory layout.
// (x, packed, bias, stride, padding, dilation, groups, activation, residual)
const OperatorSchema* packed_convolution();

}  // namespace oxy::op
