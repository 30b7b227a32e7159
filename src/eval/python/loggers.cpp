#include "eval/python/loggers.h"

#include <string_view>

#include "cpy/object_dict.h"
#include "eval/python/attribute.h"
#include "eval/python/objects.h"

namespace oxy::eval {
namespace {

using cpy::Ref;

bool is_of_module(PyObject* object, std::string_view name) {
  const Ref module = attribute_or_null(reinterpret_cast<PyObject*>(Py_TYPE(object)), "__module__");
  return module && PyUnicode_Check(module.get()) && text_of_str(module.get()) == name;
}

// What has no `stream` writes to none. Streams of Python's classes are the program's.
bool writes_to_plain_stream(PyObject* handler) {
  const Ref stream = attribute_or_null(handler, "stream");
  return !stream || stream.get() == Py_None || is_of_module(stream.get(), "_io");
}

bool makes_plain_records() {
  const Ref module = Ref::steal(PyImport_GetModule(interned("logging").get()));
  PyErr_Clear();
  return module && attribute_or_null(module.get(), "_logRecordFactory").get() ==
                       attribute_or_null(module.get(), "LogRecord").get();
}

// The stream's own flush() in the place of a handler's looks at nothing of the program.
bool replaces_method(PyObject* object) {
  PyObject* const attributes = cpy::existing_dict(object);
  if (!attributes) return false;
  PyObject* value;
  for (Py_ssize_t position = 0; PyDict_Next(attributes, &position, nullptr, &value);)
    if (PyCallable_Check(value) && !PyCFunction_Check(value)) return true;
  return false;
}

bool is_empty_list(PyObject* object) {
  return object && PyList_CheckExact(object) && PyList_GET_SIZE(object) == 0;
}

// A logger, a handler or a formatter. Those of logging.handlers are not: some hand messages to other objects.
bool is_plain(PyObject* object) {
  return is_of_module(object, "logging") && !replaces_method(object);
}

bool has_plain_handlers(PyObject* logger) {
  const Ref handlers = attribute_or_null(logger, "handlers");
  if (!handlers || !PyList_CheckExact(handlers.get())) return false;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(handlers.get()); ++i) {
    PyObject* const handler = PyList_GET_ITEM(handlers.get(), i);
    const Ref formatter = attribute_or_null(handler, "formatter");
    const bool formats_plainly = formatter && (formatter.get() == Py_None || is_plain(formatter.get()));
    if (!is_plain(handler) || !is_empty_list(attribute_or_null(handler, "filters").get()) ||
        !formats_plainly || !writes_to_plain_stream(handler))
      return false;
  }
  return true;
}

}  // namespace

bool logs_by_library_alone(PyObject* logger) {
  if (!makes_plain_records()) return false;
  for (Ref at = Ref::borrow(logger); at && at.get() != Py_None; at = attribute_or_null(at.get(), "parent")) {
    if (!is_plain(at.get()) || !is_empty_list(attribute_or_null(at.get(), "filters").get()) ||
        !has_plain_handlers(at.get()))
      return false;
    const Ref propagates = attribute_or_null(at.get(), "propagate");
    if (propagates.get() != Py_True) return propagates.get() == Py_False;
  }
  return true;
}

}  // namespace oxy::eval
