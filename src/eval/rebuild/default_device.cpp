#include "eval/rebuild/default_device.h"

#include <torch/csrc/Device.h>
#include <torch/csrc/PyInterpreter.h>

#include <algorithm>
#include <utility>

namespace oxy::eval {
namespace {

using at::impl::PythonTorchFunctionTLS;
using cpy::Ref;

// PyTorch's type of these modes. Null if this release has none.
PyTypeObject* context_type() {
  static PyObject* const type = [] {
    const Ref module = Ref::steal(PyImport_ImportModule("torch.utils._device"));
    PyObject* found = module ? PyObject_GetAttrString(module.get(), "DeviceContext") : nullptr;
    if (!found) PyErr_Clear();
    return found;
  }();
  return reinterpret_cast<PyTypeObject*>(type);
}

// The torch.device of the mode with this number; null if it is another kind of mode.
Ref device_of_mode(int64_t index) {
  PyObject* mode = PythonTorchFunctionTLS::get_stack_at(index)->ptr(getPyInterpreter());
  if (Py_TYPE(mode) != context_type()) return {};
  Ref device = Ref::steal(PyObject_GetAttrString(mode, "device"));
  if (!device) PyErr_Clear();
  return device && THPDevice_Check(device.get()) ? device : Ref();
}

}  // namespace

FunctionModes FunctionModes::current() {
  FunctionModes modes;
  for (int64_t i = 0; i < PythonTorchFunctionTLS::stack_len(); ++i) {
    if (const Ref device = device_of_mode(i)) {
      ++modes.contexts;
      modes.device = reinterpret_cast<THPDevice*>(device.get())->device;
    } else {
      ++modes.others;
    }
  }
  return modes;
}

WithoutFunctionModes::WithoutFunctionModes() : saved_(PythonTorchFunctionTLS::get_state()) {
  while (PythonTorchFunctionTLS::stack_len() > 0) PythonTorchFunctionTLS::pop_stack();
}

WithoutFunctionModes::~WithoutFunctionModes() {
  PythonTorchFunctionTLS::set_state(saved_);
}

bool DefaultDeviceChange::apply() const {
  for (size_t i = 0; i < left; ++i) PythonTorchFunctionTLS::pop_stack();
  return std::ranges::all_of(entered, [](const Ref& device) {
    return static_cast<bool>(Ref::steal(PyObject_CallMethod(device.get(), "__enter__", nullptr)));
  });
}

DefaultDevices::DefaultDevices() {
  for (int64_t i = 0; i < PythonTorchFunctionTLS::stack_len(); ++i)
    if (Ref device = device_of_mode(i)) devices_.push_back(std::move(device));
  at_start_ = kept_ = devices_.size();
}

bool DefaultDevices::leave() {
  if (devices_.empty()) return false;
  devices_.pop_back();
  kept_ = std::min(kept_, devices_.size());
  return true;
}

WithDefaultDevices::WithDefaultDevices(const DefaultDevices& devices)
    : before_(PythonTorchFunctionTLS::stack_len()) {
  for (const Ref& device : devices.all())
    if (!Ref::steal(PyObject_CallMethod(device.get(), "__enter__", nullptr))) PyErr_Clear();
}

WithDefaultDevices::~WithDefaultDevices() {
  while (PythonTorchFunctionTLS::stack_len() > before_) PythonTorchFunctionTLS::pop_stack();
}

DefaultDeviceChange DefaultDevices::change() const {
  return {.left = at_start_ - kept_,
          .entered = {devices_.begin() + static_cast<std::ptrdiff_t>(kept_), devices_.end()}};
}

}  // namespace oxy::eval
