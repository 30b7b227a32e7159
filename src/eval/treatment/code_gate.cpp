#include "eval/treatment/code_gate.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <vector>

#include "eval/python/objects.h"
#include "eval/treatment/library_code.h"
#include "trace/recorder/recorder.h"
#include "trace/tensors/trace_error.h"

namespace oxy::eval {
using cpy::Ref;

namespace {

// CPython calls __del__ at any time, and __call__ as any function. Neither is refused.
constexpr std::array<std::string_view, 2> kNeverRefused = {"__del__", "__call__"};
// Methods that C code looks for in mappings, and the enum module in classes.
constexpr std::array<std::string_view, 4> kLookedFor = {"keys", "items", "_missing_",
                                                        "_generate_next_value_"};

bool is_special(std::string_view name) {
  const auto is_name = [&](std::string_view other) { return name == other; };
  if (std::ranges::any_of(kLookedFor, is_name)) return true;
  return name.starts_with("__") && name.ends_with("__") && std::ranges::none_of(kNeverRefused, is_name);
}

bool is_function_of(PyObject* member, PyObject* function) {
  if (member == function) return true;
  const bool is_wrapped = Py_TYPE(member) == &PyClassMethod_Type || Py_TYPE(member) == &PyStaticMethod_Type;
  const auto is_attribute = [&](const char* name) {
    const Ref found = Ref::steal(PyObject_GetAttrString(member, name));
    PyErr_Clear();
    return found == function;
  };
  if (is_wrapped) return is_attribute("__func__");
  return Py_TYPE(member) == &PyProperty_Type &&
         (is_attribute("fget") || is_attribute("fset") || is_attribute("fdel"));
}

// Whether the function is a special method or a property of the type, so that C code may run it when it uses
// an object.
bool is_special_of(PyTypeObject* type, PyObject* function) {
  for (Py_ssize_t i = 0; type->tp_mro && i < PyTuple_GET_SIZE(type->tp_mro); ++i) {
    auto* const base = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(type->tp_mro, i));
    if (!PyType_HasFeature(base, Py_TPFLAGS_HEAPTYPE) || !base->tp_dict) continue;
    PyObject *key = nullptr, *value = nullptr;
    Py_ssize_t position = 0;
    while (PyDict_Next(base->tp_dict, &position, &key, &value))
      if ((Py_TYPE(value) == &PyProperty_Type || is_special(text_of_str(key))) &&
          is_function_of(value, function))
        return true;
  }
  return false;
}

// From 2.15 on PyTorch's Python code asks whether a tensor is without data, and treats a trace tensor as one.
// It would then leave out elements that it shows or copies, which is wrong here.
bool asks_for_data(PyObject* function) {
  if (text_of_str(reinterpret_cast<PyFunctionObject*>(function)->func_name) != "is_fake_tensor") return false;
  PyObject* const module = PyDict_GetItemString(PyImport_GetModuleDict(), "torch._subclasses.fake_tensor");
  const Ref asked = Ref::steal(module ? PyObject_GetAttrString(module, "is_fake_tensor") : nullptr);
  PyErr_Clear();
  return asked.get() == function;
}

}  // namespace

CodeGate::CodeGate() : base_(Ref::borrow(reinterpret_cast<PyObject*>(PyEval_GetFrame()))) {}

// Whether only code of libraries lies between the capturing frame and the present one. Otherwise a finalizer
// or callback of the program's is running, which is no part of the capture. Imports are left alone, too, as a
// refusal would leave a module half made.
bool CodeGate::is_called_by_library() const {
  Ref frame = Ref::borrow(reinterpret_cast<PyObject*>(PyEval_GetFrame()));
  while (frame && frame != base_) {
    auto* const own = reinterpret_cast<PyFrameObject*>(frame.get());
    const Ref code = Ref::steal(reinterpret_cast<PyObject*>(PyFrame_GetCode(own)));
    auto* const known = reinterpret_cast<PyCodeObject*>(code.get());
    if (!is_library_code(known) || text_of_str(known->co_name) == "<module>") return false;
    frame = Ref::steal(reinterpret_cast<PyObject*>(PyFrame_GetBack(own)));
  }
  return true;
}

bool CodeGate::admits(PyObject* function, PyObject* first) {
  if (!armed_ || !first || !PyFunction_Check(function)) return true;
  if (asks_for_data(function) && trace::is_trace_tensor(first)) {
    PyErr_SetString(trace::trace_error(), "the elements of a tensor are shown or copied");
    return false;
  }
  auto* const code = reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(function));
  if (is_library_code(code) || !is_called_by_library()) return true;
  const bool is_refused =
      is_special_of(Py_TYPE(first), function) ||
      (PyType_Check(first) && is_special_of(reinterpret_cast<PyTypeObject*>(first), function));
  if (!is_refused) return true;
  refused_ = text_of_str(code->co_qualname);
  PyErr_Format(trace::trace_error(), "C code calls %s", refused_.c_str());
  return false;
}

}  // namespace oxy::eval
