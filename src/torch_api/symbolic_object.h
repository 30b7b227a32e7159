// Symbolic integers as PyTorch's Python bindings take and give them: torch.SymInt objects around our nodes
// (symbolic_node.h). Needs the GIL.
#pragma once

#include <Python.h>

#include <ATen/core/Tensor.h>
#include <c10/core/SymInt.h>

#include <optional>

namespace oxy::torch_api {

bool is_symbolic_integer(PyObject* object);  // a torch.SymInt
bool is_symbolic_truth(PyObject* object);    // a torch.SymBool
// A new reference: a torch.SymInt, or an int for a number.
PyObject* to_python(const c10::SymInt& value);
// Precondition: is_symbolic_integer().
c10::SymInt symbolic_integer_of(PyObject* object);
// The integer behind a tensor that PyTorch's bindings have made of a torch.SymInt where an operator takes a
// tensor (`x * n`): the tensor holds a number that means nothing, and the integer is an attribute of its
// Python object. `tensor`: a wrapped number of type int64. Nothing if it is another one. Takes the GIL.
std::optional<c10::SymInt> wrapped_symbolic_integer(const at::Tensor& tensor);
// Precondition: is_symbolic_truth(). The answer for all calls, as guard_bool gives it.
bool truth_of(PyObject* object);

}  // namespace oxy::torch_api
