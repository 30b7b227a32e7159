// Which of PyTorch's memory formats a tensor is in, asked of sizes that may be symbols.
//
// A result often follows the format of an operand. The two formats of a result are one where it has no
// elements, a single channel, or a single pixel. So little has to be known of the operand's sizes, and only
// what matters for the result is asked.
#pragma once

#include "ops/core/shape_arguments.h"
#include "ops/core/size_questions.h"

namespace oxy::ops {

// What Tensor.suggest_memory_format() says of `meta`, for a result whose dimension d has the size that `meta`
// has there if keeps[d]. Never Preserve.
MemoryFormat suggested_format(const ShapeContext& context, const TensorMeta& meta,
                              const std::vector<bool>& keeps);

// A new tensor of the operand's type and of these sizes, in the format that the operand suggests.
TensorMeta in_suggested_format(const ShapeContext& context, const TensorMeta& operand,
                               std::vector<Expr> sizes);
// The same of the operand's own sizes.
TensorMeta in_suggested_format(const ShapeContext& context, const TensorMeta& operand);
// The same of operators whose kernels for GPUs write contiguous results.
TensorMeta in_format_of_host(const ShapeContext& context, const TensorMeta& operand, std::vector<Expr> sizes);

// Of a tensor whose strides are not in the order of channels-last: asks which sizes of 1 may bring them into
// it, since eager's strides of these dimensions say whether they do. Asks of the fewest sizes first.
void decide_disordered_ones(const SizeQuestions& questions, const TensorMeta& meta);

// Whether the tensor is dense with its channels innermost, for a result of the same sizes.
bool is_channels_last(const ShapeContext& context, const TensorMeta& meta);

}  // namespace oxy::ops
