// Attributes and methods of generator objects.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "eval/externals/admission.h"
#include "eval/machine/generators.h"
#include "eval/machine/step_exception.h"
#include "eval/python/traceback.h"
#include "eval/state/evaluation.h"
#include "eval/state/generator.h"
#include "eval/treatment/prelude.h"

namespace oxy::eval {
namespace {

constexpr std::array<std::string_view, 5> kMethods = {"send", "throw", "close", "__next__", "__iter__"};

}  // namespace

Ref generator_attribute(Interpreter& interpreter, PyObject* generator, PyObject* name) {
  const char* utf8 = PyUnicode_AsUTF8(name);
  const std::string_view text = utf8 ? utf8 : "";
  const GeneratorData& data = generator_data(generator);
  // The C iterator for which it stands has other attributes.
  if (is_prelude_code(data.frame.pycode()))
    interpreter.stop(fmt::format("reads attribute {} of an iterator", text));
  PyTypeObject* type = class_of(data);
  if (type == &PyAsyncGen_Type)
    interpreter.stop(fmt::format("reads attribute {} of an asynchronous generator", text));
  if (std::find(kMethods.begin(), kMethods.end(), text) != kMethods.end() && _PyType_Lookup(type, name))
    return Ref::steal(PyObject_GetAttr(generator, name));
  if (text == "__class__") return pin(interpreter, reinterpret_cast<PyObject*>(type));
  if (_PyType_Lookup(type, name))
    interpreter.stop(fmt::format("reads attribute {} of a {}", text, type->tp_name));
  PyErr_Format(PyExc_AttributeError, "'%s' object has no attribute '%U'", type->tp_name, name);
  return {};
}

Ref call_generator_method(Interpreter& interpreter, PyObject* generator, std::string_view name,
                          const Arguments& arguments) {
  const std::vector<Ref>& given = arguments.positional;
  const size_t least = name == "send" || name == "throw" ? 1 : 0;
  const size_t most = name == "throw" ? 3 : least;
  if (!arguments.keywords.empty() || given.size() < least || given.size() > most)
    interpreter.stop(fmt::format("calls {} of a generator with unusual arguments", name));
  GeneratorData& data = generator_data(generator);
  if (name == "__iter__") return Ref::borrow(generator);
  if (name == "close") {
    if (data.state == GeneratorState::Running) {
      PyErr_Format(PyExc_ValueError, "%s already executing", class_of(data)->tp_name);
      return {};
    }
    data.returned = Ref::borrow(Py_None);
    if (!close_generator(interpreter, generator)) return {};
    return PY_VERSION_HEX >= 0x030D0000 ? data.returned : Ref::borrow(Py_None);
  }
  PyObject* sent = name == "send" ? given[0].get() : Py_None;
  if (name == "throw") {
    Ref exception = given[0];
    if (given.size() == 3 && given[2] != Py_None && !is_unknown_traceback(given[2].get()))
      interpreter.stop("throws an exception with a traceback into a generator");
    const bool has_value = given.size() > 1 && given[1] != Py_None;
    if (has_value) {
      if (!PyExceptionClass_Check(exception.get()) || !PyExceptionInstance_Check(given[1].get()) ||
          !PyObject_TypeCheck(given[1].get(), reinterpret_cast<PyTypeObject*>(exception.get())))
        interpreter.stop("calls throw of a generator with unusual arguments");
      exception = given[1];
    }
    if (!PyExceptionClass_Check(exception.get()) && !PyExceptionInstance_Check(exception.get()))
      interpreter.stop("calls throw of a generator with unusual arguments");
    if (!instantiate(interpreter, exception)) return {};
    if (interpreter.externals.is_external(exception.get()))
      interpreter.stop("raises an exception object made before the call");
    PyObject* type = Py_NewRef(reinterpret_cast<PyObject*>(Py_TYPE(exception.get())));
    PyErr_Restore(type, exception.release(), nullptr);
    sent = nullptr;
  } else if (data.state == GeneratorState::Created && sent != Py_None) {
    PyErr_Format(PyExc_TypeError, "can't send non-None value to a just-started %s", class_of(data)->tp_name);
    return {};
  }
  bool error = false;
  Ref value = run_generator(interpreter, generator, sent, &error);
  if (!value && !error) set_stop_iteration(data.returned);
  return value;
}

}  // namespace oxy::eval
