#include "eval/torch/default_device.h"

#include <algorithm>

namespace oxy::eval {
namespace {

// The functions that PyTorch gives the default device: a set. Null if this release has none.
PyObject* factories() {
  static PyObject* const set = [] {
    const Ref module =
        Ref::steal(PyImport_ImportModule("torch.utils._device"));  // not loaded before it is needed
    Ref made =
        module ? Ref::steal(PyObject_CallMethod(module.get(), "_device_constructors", nullptr)) : Ref();
    if (!made) PyErr_Clear();
    return made && PyAnySet_Check(made.get()) ? Py_NewRef(made.get()) : nullptr;
  }();
  return set;
}

bool is_factory(PyObject* callable) {
  // Other callables may have a hash function of the program's.
  if (!PyCFunction_Check(callable) && !PyFunction_Check(callable)) return false;
  return factories() && PySet_Contains(factories(), callable) == 1;
}

}  // namespace

void give_default_device(const Interpreter& interpreter, PyObject* callable, Arguments& arguments) {
  PyObject* device = interpreter.default_devices.current();
  if (!device || !is_factory(callable)) return;
  const auto given = std::ranges::find_if(arguments.keywords, [](const auto& keyword) {
    return PyUnicode_CompareWithASCIIString(keyword.first.get(), "device") == 0;
  });
  if (given == arguments.keywords.end())
    arguments.keywords.emplace_back(Ref::steal(PyUnicode_InternFromString("device")), Ref::borrow(device));
  else if (given->second.get() == Py_None)
    given->second = Ref::borrow(device);
}

Ref call_device_context(Interpreter& interpreter, PyObject* device, std::string_view name) {
  if (name == "__enter__") {
    interpreter.default_devices.enter(Ref::borrow(device));
    return Ref::borrow(device);
  }
  if (!interpreter.default_devices.leave()) interpreter.stop("leaves a torch.device that was not entered");
  return none();
}

}  // namespace oxy::eval
