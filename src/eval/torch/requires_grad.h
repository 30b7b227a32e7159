// Whether a tensor of the program requires grad in eager, where the recording says that it does.
#pragma once

#include <ATen/core/Tensor.h>

#include "eval/state/interpreter.h"

namespace oxy::eval {

// `tensor` is a trace tensor. In a recording, a view that is made without gradients of an argument is a view
// of the argument, and requires grad as it does. In eager it is a view of the argument's base, which does not
// if the argument is a leaf and a view itself. So neither such a view nor what is computed of it alone does.
bool requires_grad_in_eager(Interpreter& interpreter, const at::Tensor& tensor);

}  // namespace oxy::eval
