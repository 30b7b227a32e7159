#include "torch_api/symbolic_object.h"

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

bool truth_of(PyObject* object) {
  return py::handle(object).cast<c10::SymBool>().guard_bool(__FILE__, __LINE__);
}

}  // namespace oxy::torch_api
