#include "torch_api/symbolic_object.h"

#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/utils/pybind.h>
#include <torch/csrc/utils/python_symnode.h>

namespace oxy::torch_api {

bool is_symbolic_integer(PyObject* object) {
  return torch::is_symint(py::handle(object));
}

bool is_symbolic_truth(PyObject* object) {
  return torch::is_symbool(py::handle(object));
}

PyObject* to_python(const c10::SymInt& value) {
  return py::cast(value).release().ptr();
}

c10::SymInt symbolic_integer_of(PyObject* object) {
  return py::handle(object).cast<c10::SymInt>();
}

std::optional<c10::SymInt> wrapped_symbolic_integer(const at::Tensor& tensor) {
  constexpr int64_t kMeaningless = 7777777;  // what PyTorch puts into such a tensor
  if (*static_cast<const int64_t*>(tensor.const_data_ptr()) != kMeaningless) return std::nullopt;
  const py::gil_scoped_acquire gil;
  const auto object = py::reinterpret_steal<py::object>(THPVariable_Wrap(tensor));
  if (!object || !py::hasattr(object, "_wrapped_number")) return std::nullopt;
  const py::object number = object.attr("_wrapped_number");
  if (!is_symbolic_integer(number.ptr())) return std::nullopt;
  return symbolic_integer_of(number.ptr());
}

bool truth_of(PyObject* object) {
  return py::handle(object).cast<c10::SymBool>().guard_bool(__FILE__, __LINE__);
}

}  // namespace oxy::torch_api
