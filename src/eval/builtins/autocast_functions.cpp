// The functions that torch.autocast changes its thread's state with: called for real, and replayed where the
// change outlives the captured region.
#include <ATen/autocast_mode.h>
#include <torch/csrc/Dtype.h>

#include "eval/builtins/builtin_families.h"
#include "eval/externals/c_calls.h"
#include "eval/python/objects.h"
#include "runtime/device/autocast.h"
#include "runtime/device/device.h"

namespace oxy::eval {
namespace {

struct Change {
  c10::DeviceType device;
  PyObject* value;  // borrowed
};

// The arguments: a device on which plans run, and what is to hold there.
Change read_change(Interpreter& interpreter, const Arguments& a, const char* name) {
  expect(interpreter, a, name, 2, 2);
  PyObject* text = arg(a, 0);
  for (const c10::DeviceType device : runtime::kAutocastDevices) {
    const std::string type = c10::DeviceTypeName(device, /*lower_case=*/true);
    if (!PyUnicode_Check(text) || PyUnicode_CompareWithASCIIString(text, type.c_str()) != 0) continue;
    if (runtime::find_device(device) == nullptr) break;
    if (interpreter.torch_calls.get()) interpreter.stop("changes autocast, which a backend's program cannot");
    return {device, arg(a, 1)};
  }
  interpreter.stop(fmt::format("calls {}() for another device", name));
}

Ref set_enabled(Interpreter& interpreter, Arguments& a) {
  const auto [device, value] = read_change(interpreter, a, "set_autocast_enabled");
  if (!PyBool_Check(value)) interpreter.stop("calls set_autocast_enabled() with something else than a bool");
  at::autocast::set_autocast_enabled(device, value == Py_True);
  return none();
}

Ref set_dtype(Interpreter& interpreter, Arguments& a) {
  const auto [device, value] = read_change(interpreter, a, "set_autocast_dtype");
  if (!THPDtype_Check(value)) interpreter.stop("calls set_autocast_dtype() with something else than a dtype");
  at::autocast::set_autocast_dtype(device, reinterpret_cast<THPDtype*>(value)->scalar_type);
  return none();
}

Ref increment_nesting(Interpreter& interpreter, Arguments& a) {
  expect(interpreter, a, "autocast_increment_nesting", 0, 0);
  return Ref::steal(PyLong_FromLong(at::autocast::increment_nesting()));
}

Ref decrement_nesting(Interpreter& interpreter, Arguments& a) {
  expect(interpreter, a, "autocast_decrement_nesting", 0, 0);
  return Ref::steal(PyLong_FromLong(at::autocast::decrement_nesting()));
}

Ref clear_cache(Interpreter& interpreter, Arguments& a) {
  expect(interpreter, a, "clear_autocast_cache", 0, 0);
  interpreter.autocast_cache.clears = true;
  return none();
}

Ref set_cache_enabled(Interpreter& interpreter, Arguments& a) {
  expect(interpreter, a, "set_autocast_cache_enabled", 1, 1);
  if (!PyBool_Check(arg(a, 0)))
    interpreter.stop("calls set_autocast_cache_enabled() with something else than a bool");
  interpreter.autocast_cache.enabled = arg(a, 0) == Py_True;
  return none();
}

Ref is_cache_enabled(Interpreter& interpreter, Arguments& a) {
  expect(interpreter, a, "is_autocast_cache_enabled", 0, 0);
  return boolean(interpreter.autocast_cache.enabled);
}

// What is guarded are the types of the CPU and of CUDA.
Ref get_dtype(Interpreter& interpreter, Arguments& a) {
  expect(interpreter, a, "get_autocast_dtype", 1, 1);
  PyObject* device = arg(a, 0);
  const bool is_guarded = PyUnicode_Check(device) && (PyUnicode_CompareWithASCIIString(device, "cpu") == 0 ||
                                                      PyUnicode_CompareWithASCIIString(device, "cuda") == 0);
  if (!is_guarded) interpreter.stop("calls get_autocast_dtype() for another device");
  return call_real(interpreter, well_known("torch", "get_autocast_dtype"), a);
}

constexpr BuiltinEntry kTable[] = {
    {"torch", "get_autocast_dtype", &get_dtype},
    {"torch", "set_autocast_enabled", &set_enabled},
    {"torch", "set_autocast_dtype", &set_dtype},
    {"torch", "autocast_increment_nesting", &increment_nesting},
    {"torch", "autocast_decrement_nesting", &decrement_nesting},
    {"torch", "clear_autocast_cache", &clear_cache},
    {"torch", "set_autocast_cache_enabled", &set_cache_enabled},
    {"torch", "is_autocast_cache_enabled", &is_cache_enabled},
};

}  // namespace

std::span<const BuiltinEntry> autocast_builtins() {
  return kTable;
}

}  // namespace oxy::eval
