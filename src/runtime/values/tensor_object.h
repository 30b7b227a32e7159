// Python's objects of tensors. PyTorch declares them in torch/csrc/autograd/python_variable.h, which brings
// pybind11 with it: that costs 7 s in every file that sees it, so one file does (tensor_object.cpp).
#pragma once

#include <ATen/core/Tensor.h>
#include <Python.h>
#include <torch/csrc/Export.h>

#include <utility>

TORCH_PYTHON_API extern PyObject* THPVariableClass;
TORCH_PYTHON_API extern PyObject* ParameterClass;
TORCH_PYTHON_API PyObject* THPVariable_Wrap(at::TensorBase&& tensor);
TORCH_PYTHON_API PyObject* THPVariable_Wrap(const at::TensorBase& tensor);

namespace oxy::runtime {

// How such an object begins.
struct TensorObject {
  PyObject_HEAD at::Tensor tensor;
};

// torch.Tensor (borrowed, lives for ever).
inline PyTypeObject* tensor_class() {
  return reinterpret_cast<PyTypeObject*>(THPVariableClass);
}

// torch.nn.Parameter, or null as long as that is not imported.
inline PyTypeObject* parameter_class() {
  return reinterpret_cast<PyTypeObject*>(ParameterClass);
}

// Whether it is one, of a subclass or not. Asks the type and runs nothing of the object's: one that only says
// so through its `__class__` (a weak proxy) is none.
inline bool is_tensor(PyObject* object) {
  return PyType_IsSubtype(Py_TYPE(object), tensor_class());
}

// Precondition: is_tensor(object). The reference lives as long as the object.
inline const at::Tensor& tensor_of(PyObject* object) {
  return reinterpret_cast<TensorObject*>(object)->tensor;
}

// A new reference to the object of a tensor, always the same one while it lives; None for an undefined
// tensor. Throws PyTorch's python_error.
template <class Tensor>
PyObject* wrap_tensor(Tensor&& tensor) {
  return THPVariable_Wrap(std::forward<Tensor>(tensor));
}

}  // namespace oxy::runtime
