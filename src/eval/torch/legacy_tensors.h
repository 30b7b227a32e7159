// The constructors that tensors had before torch.tensor(): tensor.new() and torch.FloatTensor and the like.
#pragma once

#include "eval/state/interpreter.h"

namespace oxy::eval {

// tensor.new(...) of a trace tensor. Stops at arguments that no graph can express (storages, other tensors,
// arrays of NumPy's).
Ref new_like(Interpreter& interpreter, PyObject* tensor, const Arguments& arguments);

// torch.Tensor(...), torch.LongTensor(...) and the like. Precondition: is_legacy_tensor_type().
Ref new_of_type(Interpreter& interpreter, PyTypeObject* type, const Arguments& arguments);
bool is_legacy_tensor_type(PyTypeObject* type);

}  // namespace oxy::eval
