#include "eval/externals/plain.h"

#include <fmt/format.h>
#include <torch/csrc/Size.h>

#include "eval/externals/external_containers.h"
#include "eval/externals/identity.h"
#include "eval/externals/own_code.h"
#include "eval/numbers/numpy_scalars.h"
#include "eval/numbers/symbolic_integer.h"
#include "eval/numbers/symbolic_size.h"
#include "eval/numbers/varying_number.h"
#include "eval/python/objects.h"
#include "eval/state/generator.h"
#include "eval/state/interpreter.h"
#include "guards/constants.h"
#include "runtime/values/tensor_object.h"

namespace oxy::eval {

namespace {

// A slice of the parts as C code may see them.
Ref plain_slice(Interpreter& interpreter, PyObject* object, const char* what, ShownAs ints) {
  const auto* const slice = reinterpret_cast<PySliceObject*>(object);
  const Ref start = plain(interpreter, slice->start, what, ints),
            stop = plain(interpreter, slice->stop, what, ints),
            step = plain(interpreter, slice->step, what, ints);
  return Ref::steal(PySlice_New(start.get(), stop.get(), step.get()));
}

}  // namespace

Ref plain(Interpreter& interpreter, PyObject* object, const char* what, ShownAs ints) {
  constexpr size_t kDeepest = 500;  // each level is two frames of the stack
  if (ints == ShownAs::Symbols && is_symbolic_integer(interpreter, object))
    if (const std::optional<sym::Expr> expression = expression_of(interpreter, object))
      return to_torch(interpreter, *expression);
  if (is_varying_number(object)) return constant_of(interpreter, object);
  if (PySlice_Check(object) && has_varying_part(object)) return plain_slice(interpreter, object, what, ints);
  if (guards::is_numpy_scalar(object)) return known_scalar(interpreter, object);
  // A real tensor was made by torch from constants.
  if (runtime::is_tensor(object) || is_value_object(object)) return Ref::borrow(object);
  if (!interpreter.shadows.shown.insert(object).second)
    interpreter.stop(fmt::format("{} is given a container that contains itself", what));
  struct Leave {
    std::unordered_set<PyObject*>& shown;
    PyObject* object;
    ~Leave() { shown.erase(object); }
  } leave{interpreter.shadows.shown, object};
  if (interpreter.shadows.shown.size() > kDeepest)
    interpreter.stop(fmt::format("{} is given containers nested too deeply", what));
  if (is_container(object) && has_own_special(interpreter, object))
    interpreter.stop(fmt::format("{} is given an object of type {}", what, Py_TYPE(object)->tp_name));
  if (PyTuple_Check(object) || PyList_Check(object) || PyDict_Check(object)) {
    need_few_items_within(interpreter, object);
    Ref shallow = materialize(interpreter, object);
    if (PyDict_Check(shallow.get())) {
      // C code may name the class, and the copy is of another one.
      if (PyODict_Check(object) || is_defaultdict_type(native_base(Py_TYPE(object))))
        if (Py_TYPE(shallow.get()) != Py_TYPE(object))
          interpreter.stop(fmt::format("{} is given an object of type {}", what, Py_TYPE(object)->tp_name));
      Ref result;
      PyObject *key = nullptr, *value = nullptr;
      Py_ssize_t position = 0;
      while (PyDict_Next(shallow.get(), &position, &key, &value)) {
        Ref inner = plain(interpreter, value, what, ints);
        if (inner == value) continue;
        if (!result) result = Ref::steal(PyDict_Copy(shallow.get()));
        PyDict_SetItem(result.get(), key, inner.get());
      }
      return result ? result : shallow;
    }
    const bool tuple = PyTuple_Check(shallow.get());
    const Py_ssize_t size = PySequence_Fast_GET_SIZE(shallow.get());
    Ref result;
    for (Py_ssize_t i = 0; i < size; ++i) {
      PyObject* item = PySequence_Fast_GET_ITEM(shallow.get(), i);
      Ref inner = plain(interpreter, item, what, ints);
      if (inner == item) continue;
      if (!result) result = Ref::steal(PySequence_List(shallow.get()));
      PyList_SetItem(result.get(), i, inner.release());
    }
    if (!result) return shallow;
    if (tuple) result = Ref::steal(PyList_AsTuple(result.get()));
    return THPSize_Check(shallow.get()) ? make_size(result.get()) : result;
  }
  if (PyAnySet_Check(object)) {
    Ref shallow = materialize(interpreter, object);
    if (Py_TYPE(shallow.get()) != Py_TYPE(object))
      interpreter.stop(fmt::format("{} is given an object of type {}", what, Py_TYPE(object)->tp_name));
    return shallow;
  }
  if (is_generator(object) || is_coroutine(object))
    interpreter.stop(fmt::format("{} is given a generator", what));
  if (is_builtin_iterator(object) && interpreter.externals.is_external(object))
    interpreter.stop("advances an iterator made before the captured region");
  if (interpreter.externals.is_known_by_code(object)) require_identity(interpreter, object);
  if (is_identity_object(object) || is_builtin_iterator(object)) return Ref::borrow(object);
  if (!interpreter.externals.is_external(object)) {
    // C code looks at the contents of these: the arguments of an exception, the items of a view.
    Ref held;
    if (PyExceptionInstance_Check(object)) held = exception_arguments(object);
    if (PyDictViewSet_Check(object) || PyDictValues_Check(object)) held = Ref::steal(PySequence_List(object));
    if (held && plain(interpreter, held.get(), what) != held)
      interpreter.stop(fmt::format("{} is given an object of type {}", what, Py_TYPE(object)->tp_name));
    if (held || PyByteArray_Check(object) || PyMemoryView_Check(object)) return Ref::borrow(object);
  }
  interpreter.stop(fmt::format("{} is given an object of type {}", what, Py_TYPE(object)->tp_name));
}

Ref known(Interpreter& interpreter, PyObject* object, const char* what) {
  if (!interpreter.externals.is_external(object) && !is_varying_number(object) && !has_varying_part(object))
    return Ref::borrow(object);
  Ref shown = plain(interpreter, object, what);
  // C code may name the type in an error, and the copy is of another one.
  if (interpreter.externals.is_external(object) && Py_TYPE(shown.get()) != Py_TYPE(object))
    interpreter.stop(fmt::format("{} is given an object of type {}", what, Py_TYPE(object)->tp_name));
  return shown;
}

}  // namespace oxy::eval
