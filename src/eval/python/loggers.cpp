#include "eval/python/loggers.h"

#include <string_view>

#include "cpy/object_dict.h"

namespace oxy::eval {
namespace {

using cpy::Ref;

Ref attribute(PyObject* object, const char* name) {
  Ref value = Ref::steal(PyObject_GetAttrString(object, name));
  PyErr_Clear();
  return value;
}

bool is_of_library(PyObject* object) {
  const Ref module = attribute(reinterpret_cast<PyObject*>(Py_TYPE(object)), "__module__");
  if (!module || !PyUnicode_Check(module.get())) return false;
  const std::string_view name = PyUnicode_AsUTF8(module.get());
  return name == "logging" || name == "logging.handlers";
}

// The stream's own flush() in the place of a handler's looks at nothing of the program.
bool replaces_method(PyObject* object) {
  PyObject* const attributes = cpy::existing_dict(object);
  if (!attributes) return false;
  PyObject* value;
  for (Py_ssize_t position = 0; PyDict_Next(attributes, &position, nullptr, &value);)
    if (PyFunction_Check(value) || PyMethod_Check(value)) return true;
  return false;
}

bool is_empty_list(PyObject* object) {
  return object && PyList_CheckExact(object) && PyList_GET_SIZE(object) == 0;
}

// A logger, a handler or a formatter.
bool is_plain(PyObject* object) {
  return is_of_library(object) && !replaces_method(object);
}

bool has_plain_handlers(PyObject* logger) {
  const Ref handlers = attribute(logger, "handlers");
  if (!handlers || !PyList_CheckExact(handlers.get())) return false;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(handlers.get()); ++i) {
    PyObject* const handler = PyList_GET_ITEM(handlers.get(), i);
    const Ref formatter = attribute(handler, "formatter");
    const bool formats_plainly = formatter && (formatter.get() == Py_None || is_plain(formatter.get()));
    if (!is_plain(handler) || !is_empty_list(attribute(handler, "filters").get()) || !formats_plainly)
      return false;
  }
  return true;
}

}  // namespace

bool logs_by_library_alone(PyObject* logger) {
  for (Ref at = Ref::borrow(logger); at && at.get() != Py_None; at = attribute(at.get(), "parent")) {
    if (!is_plain(at.get()) || !is_empty_list(attribute(at.get(), "filters").get()) ||
        !has_plain_handlers(at.get()))
      return false;
    const Ref propagates = attribute(at.get(), "propagate");
    if (!propagates || PyObject_IsTrue(propagates.get()) != 1) return true;
  }
  return true;
}

}  // namespace oxy::eval
