// Calls of F.scaled_dot_product_attention: masks that say nothing, or say it in a form that few kernels take,
// and the choice among PyTorch's kernels.
#pragma once

#include <optional>

#include "eval/state/interpreter.h"

namespace oxy::eval {

// PyTorch chooses the kernel by sizes and strides. All of them give the result: those at hand may decide
// (trace::LayoutAtHand).
bool is_attention(PyObject* callable);

// The arguments with the mask in its plain form (trace/recording/attention_masks.h). Nothing: it is another
// function, or its mask stays.
std::optional<Arguments> with_plain_mask(PyObject* callable, const Arguments& arguments);

}  // namespace oxy::eval
