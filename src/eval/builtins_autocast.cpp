// The functions that torch.autocast changes its thread's state with: called for real, and replayed where the
// change outlives the captured region.
#include <ATen/autocast_mode.h>
#include <torch/csrc/Dtype.h>

#include "eval/builtin_families.h"
#include "eval/objects.h"

namespace oxy::eval {
namespace {

// The argument after the device, which must be the CPU.
PyObject* for_cpu(Evaluator& e, const Arguments& a, const char* name) {
  expect(e, a, name, 2, 2);
  PyObject* device = arg(a, 0);
  if (!PyUnicode_Check(device) || PyUnicode_CompareWithASCIIString(device, "cpu") != 0)
    e.stop(fmt::format("calls {}() for another device", name));
  if (e.torch_calls()) e.stop("changes autocast, which a backend's program cannot");
  return arg(a, 1);
}

Ref set_enabled(Evaluator& e, Arguments& a) {
  PyObject* value = for_cpu(e, a, "set_autocast_enabled");
  if (!PyBool_Check(value)) e.stop("calls set_autocast_enabled() with something else than a bool");
  at::autocast::set_autocast_enabled(at::kCPU, value == Py_True);
  return none();
}

Ref set_dtype(Evaluator& e, Arguments& a) {
  PyObject* value = for_cpu(e, a, "set_autocast_dtype");
  if (!THPDtype_Check(value)) e.stop("calls set_autocast_dtype() with something else than a dtype");
  at::autocast::set_autocast_dtype(at::kCPU, reinterpret_cast<THPDtype*>(value)->scalar_type);
  return none();
}

Ref increment_nesting(Evaluator& e, Arguments& a) {
  expect(e, a, "autocast_increment_nesting", 0, 0);
  return Ref::steal(PyLong_FromLong(at::autocast::increment_nesting()));
}

Ref decrement_nesting(Evaluator& e, Arguments& a) {
  expect(e, a, "autocast_decrement_nesting", 0, 0);
  return Ref::steal(PyLong_FromLong(at::autocast::decrement_nesting()));
}

Ref clear_cache(Evaluator& e, Arguments& a) {
  expect(e, a, "clear_autocast_cache", 0, 0);
  e.autocast_cache().clears = true;
  return none();
}

Ref set_cache_enabled(Evaluator& e, Arguments& a) {
  expect(e, a, "set_autocast_cache_enabled", 1, 1);
  if (!PyBool_Check(arg(a, 0))) e.stop("calls set_autocast_cache_enabled() with something else than a bool");
  e.autocast_cache().enabled = arg(a, 0) == Py_True;
  return none();
}

Ref is_cache_enabled(Evaluator& e, Arguments& a) {
  expect(e, a, "is_autocast_cache_enabled", 0, 0);
  return boolean(e.autocast_cache().enabled);
}

// What is guarded are the types of the CPU and of CUDA.
Ref get_dtype(Evaluator& e, Arguments& a) {
  expect(e, a, "get_autocast_dtype", 1, 1);
  PyObject* device = arg(a, 0);
  const bool is_guarded = PyUnicode_Check(device) && (PyUnicode_CompareWithASCIIString(device, "cpu") == 0 ||
                                                      PyUnicode_CompareWithASCIIString(device, "cuda") == 0);
  if (!is_guarded) e.stop("calls get_autocast_dtype() for another device");
  return e.call_real(well_known("torch", "get_autocast_dtype"), a);
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
