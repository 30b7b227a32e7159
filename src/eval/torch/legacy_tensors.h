// The constructors that tensors had before torch.tensor().
#pragma once

#include "eval/state/interpreter.h"

namespace oxy::eval {

// tensor.new(...): `tensor` stands for one. Null with the Python error that the constructor raises; stops
// where it takes what no graph has (storages, other tensors, NumPy's arrays).
Ref new_like(Interpreter& interpreter, PyObject* tensor, const Arguments& arguments);

// torch.Tensor(...) or torch.LongTensor(...) and its like. Precondition: is_legacy_tensor_type().
Ref new_of_type(Interpreter& interpreter, PyTypeObject* type, const Arguments& arguments);
bool is_legacy_tensor_type(PyTypeObject* type);

}  // namespace oxy::eval
