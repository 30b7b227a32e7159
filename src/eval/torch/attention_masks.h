// Calls of F.scaled_dot_product_attention with a mask that says nothing, or says it in a form that few
// kernels take.
#pragma once

#include <optional>

#include "eval/state/interpreter.h"

namespace oxy::eval {

// The arguments with the mask in its plain form (trace/composites/attention_masks.h). Nothing: it is another
// function, or its mask stays.
std::optional<Arguments> with_plain_mask(PyObject* callable, const Arguments& arguments);

}  // namespace oxy::eval
