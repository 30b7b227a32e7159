// isinstance(), as a builtin and as what class patterns do.
#include "eval/evaluator.h"
#include "eval/generator.h"
#include "eval/objects.h"
#include "eval/traceback.h"
#include "eval/varying_number.h"

namespace oxy::eval {

namespace {

// Of the program's own metaclasses: those of libraries answer by the class alone.
bool has_own_check(PyObject* class_object) {
  PyObject* check = _PyType_Lookup(Py_TYPE(class_object),
                                   Ref::steal(PyUnicode_InternFromString("__instancecheck__")).get());
  if (!check || !PyFunction_Check(check)) return false;
  PyObject* module = PyFunction_GetModule(check);
  const char* text = module && PyUnicode_Check(module) ? PyUnicode_AsUTF8(module) : nullptr;
  const std::string_view name = text ? text : "";
  return name != "abc" && name != "typing" && name != "torch" && !name.starts_with("torch.");
}

}  // namespace

int Evaluator::instance_of(PyObject* object, PyObject* classes) {
  if (is_unknown_traceback(object)) stop("looks into a traceback");
  PyTypeObject* type = Py_TYPE(object);
  const bool stands_for_another = is_varying_number(object) || is_generator(object) || is_coroutine(object);
  if (is_varying_number(object)) {
    type = varying_class(object);
  } else if (stands_for_another) {
    type = class_of_generator(*this, object);
  }
  if (reinterpret_cast<PyObject*>(type) == classes) return 1;
  if (PyTuple_Check(classes)) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(classes); ++i)
      if (const int result = instance_of(object, PyTuple_GET_ITEM(classes, i)); result != 0) return result;
    return 0;
  }
  if (has_own_check(classes)) {
    const Ref check = special_method(classes, "__instancecheck__");
    const Ref answer = check ? call_positional(check.get(), {Ref::borrow(object)}) : Ref();
    bool error = false;
    const bool result = answer && truth(answer.get(), &error);
    return !answer || error ? -1 : result;
  }
  return stands_for_another ? PyObject_IsSubclass(reinterpret_cast<PyObject*>(type), classes)
                            : PyObject_IsInstance(object, classes);
}

}  // namespace oxy::eval
