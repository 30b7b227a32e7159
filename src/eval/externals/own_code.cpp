// Special methods of the program's classes that C code would call during a capture.
#include "eval/externals/own_code.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "eval/externals/type_lookup.h"
#include "eval/numbers/varying_number.h"
#include "eval/python/objects.h"
#include "eval/state/interpreter.h"
#include "guards/constants.h"

namespace oxy::eval {

namespace {

constexpr std::array kSpecials = {"__index__",  "__int__",     "__float__",   "__str__",         "__repr__",
                                  "__format__", "__hash__",    "__eq__",      "__ne__",          "__lt__",
                                  "__gt__",     "__le__",      "__ge__",      "__iter__",        "__len__",
                                  "__bool__",   "__getitem__", "__getattr__", "__getattribute__"};

}  // namespace

bool has_own_special(Interpreter& interpreter, PyObject* object) {
  if (!is_python_class(Py_TYPE(object)) || is_enum_member(object)) return false;
  return std::ranges::any_of(kSpecials,
                             [&](const char* name) { return has_python_special(interpreter, object, name); });
}

bool has_own_code(Interpreter& interpreter, PyObject* object, int depth) {
  constexpr int kDeepest = 100;  // a container that contains itself reaches any depth
  if (guards::is_constant(object) || is_varying_number(object) || trace::is_trace_tensor(object))
    return false;
  if (depth == kDeepest) return true;
  const auto has = [&](PyObject* part) {
    return part != object && has_own_code(interpreter, part, depth + 1);
  };
  if (PySlice_Check(object)) {
    auto* slice = reinterpret_cast<PySliceObject*>(object);
    return has(slice->start) || has(slice->stop) || has(slice->step);
  }
  if (!PyTuple_CheckExact(object) && !PyList_CheckExact(object)) return has_own_special(interpreter, object);
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(object); ++i)
    if (has(PySequence_Fast_GET_ITEM(object, i))) return true;
  return false;
}

void refuse_own_iteration(Interpreter& interpreter, PyObject* container) {
  if ((PyDict_Check(container) || PyAnySet_Check(container)) &&
      has_python_special(interpreter, container, "__iter__"))
    interpreter.stop(fmt::format("takes all of an object of type {}, which iterates in its own way",
                                 Py_TYPE(container)->tp_name));
}

void refuse_own_code(Interpreter& interpreter, PyObject* object, std::string_view where) {
  if (has_own_code(interpreter, object))
    interpreter.stop(fmt::format("{} looks at an object of type {}, which has special methods of its own",
                                 where, Py_TYPE(object)->tp_name));
}

}  // namespace oxy::eval
