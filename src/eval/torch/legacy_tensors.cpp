// The constructors of tensors that take sizes or data in the same place. They look at the backend of the
// tensor or class that they belong to; what they make is what torch.empty() and torch.tensor() make.
#include "eval/torch/legacy_tensors.h"

#include <torch/csrc/Device.h>
#include <torch/csrc/Size.h>

#include <algorithm>

#include "eval/externals/plain.h"
#include "eval/numbers/varying_number.h"
#include "eval/python/objects.h"
#include "eval/state/evaluation.h"
#include "runtime/values/host.h"
#include "runtime/values/tensor_object.h"

namespace oxy::eval {
namespace {

struct Asked {
  Ref sizes;  // a tuple of ints, or null
  Ref data;   // a list or tuple, or null
};

[[noreturn]] void stop_at(const Interpreter& interpreter, const std::string& name, const char* what) {
  interpreter.stop(name + " " + what, "torch.empty() takes sizes, torch.tensor() data");
}

bool is_host(PyObject* device) {
  if (THPDevice_Check(device)) return reinterpret_cast<THPDevice*>(device)->device.type() == runtime::kHost;
  return PyUnicode_Check(device) && PyUnicode_CompareWithASCIIString(device, "cpu") == 0;
}

Asked read_arguments(Interpreter& interpreter, const std::string& name, const Arguments& arguments) {
  for (const auto& [keyword, value] : arguments.keywords)
    if (PyUnicode_CompareWithASCIIString(keyword.get(), "device") != 0 || !is_host(value.get()))
      stop_at(interpreter, name, "is given other keywords than device=\"cpu\"");
  const std::vector<Ref>& given = arguments.positional;
  if (given.size() == 1 && THPSize_Check(given[0].get())) return {given[0], {}};
  if (given.size() == 1 && (PyList_CheckExact(given[0].get()) || PyTuple_CheckExact(given[0].get()))) {
    const Ref data = plain(interpreter, given[0].get(), name.c_str());
    if (any_tensor(data.get(), [](PyObject*) { return true; }))
      stop_at(interpreter, name, "copies tensors that a list holds");
    return {{}, data};
  }
  if (given.empty()) {
    const Ref none = Ref::steal(PyLong_FromLong(0));
    return {Ref::steal(PyTuple_Pack(1, none.get())), {}};
  }
  Ref sizes = Ref::steal(PyTuple_New(static_cast<Py_ssize_t>(given.size())));
  for (size_t i = 0; i < given.size(); ++i) {
    Ref size = constant_of(interpreter, given[i].get());
    if (!PyLong_CheckExact(size.get()))
      stop_at(interpreter, name, "is given what is neither sizes nor a list or tuple of numbers");
    PyTuple_SET_ITEM(sizes.get(), static_cast<Py_ssize_t>(i), size.release());
  }
  return {sizes, {}};
}

Arguments with_options(const Ref& first, const Ref& dtype, const Ref& device) {
  Arguments result;
  result.positional.push_back(first);
  if (dtype) result.keywords.emplace_back(interned("dtype"), dtype);
  if (device) result.keywords.emplace_back(interned("device"), device);
  return result;
}

Ref make(Interpreter& interpreter, const std::string& name, const Arguments& arguments, const Ref& dtype,
         const Ref& device) {
  const Asked asked = read_arguments(interpreter, name, arguments);
  const char* maker = asked.sizes ? "empty" : "tensor";
  return call(interpreter, well_known("torch", maker),
              with_options(asked.sizes ? asked.sizes : asked.data, dtype, device));
}

}  // namespace

Ref new_like(Interpreter& interpreter, PyObject* tensor, const Arguments& arguments) {
  return make(interpreter, "Tensor.new()", arguments, Ref::steal(PyObject_GetAttrString(tensor, "dtype")),
              Ref::steal(PyObject_GetAttrString(tensor, "device")));
}

bool is_legacy_tensor_type(PyTypeObject* type) {
  // Their metaclass belongs to them alone.
  auto* const known = reinterpret_cast<PyTypeObject*>(well_known("torch", "FloatTensor"));
  return type == runtime::tensor_class() || (known && Py_TYPE(type) == Py_TYPE(known));
}

Ref new_of_type(Interpreter& interpreter, PyTypeObject* type, const Arguments& arguments) {
  auto* const class_object = reinterpret_cast<PyObject*>(type);
  const std::string name = describe_callable(class_object) + "()";
  if (type == runtime::tensor_class()) {
    const Ref dtype = Ref::steal(PyObject_CallNoArgs(well_known("torch", "get_default_dtype")));
    return make(interpreter, name, arguments, dtype, {});
  }
  const auto member = [&](const char* attribute) {
    return Ref::steal(PyObject_GetAttrString(class_object, attribute));
  };
  const bool is_dense_on_cpu =
      member("is_cuda") == Py_False && member("is_xpu") == Py_False && member("is_sparse") == Py_False;
  const Ref dtype = member("dtype");
  PyErr_Clear();
  if (!is_dense_on_cpu || !dtype)
    interpreter.stop(name + " makes a tensor that is not dense or not on the CPU");
  return make(interpreter, name, arguments, dtype, Ref::steal(PyUnicode_FromString("cpu")));
}

}  // namespace oxy::eval
