// isinstance(), as a builtin and as what class patterns do, and issubclass().
#include "eval/objects/instance_checks.h"

#include <fmt/format.h>

#include "eval/externals/external_containers.h"
#include "eval/externals/type_lookup.h"
#include "eval/numbers/varying_number.h"
#include "eval/objects/attributes.h"
#include "eval/objects/containers.h"
#include "eval/python/objects.h"
#include "eval/python/traceback.h"
#include "eval/state/evaluation.h"
#include "eval/state/generator.h"
#include "eval/state/interpreter.h"

namespace oxy::eval {

namespace {

std::string_view module_of(PyObject* function) {
  PyObject* module = PyFunction_GetModule(function);
  const char* text = module && PyUnicode_Check(module) ? PyUnicode_AsUTF8(module) : nullptr;
  return text ? text : "";
}

// The method `name` (`__instancecheck__` or `__subclasscheck__`) of the class's metaclass, if it is Python
// code.
Ref own_check(Interpreter& interpreter, PyObject* class_object, const char* name) {
  Ref check = type_lookup(interpreter, Py_TYPE(class_object), interned(name).get());
  if (!check || is_of_c(check.get())) return {};
  if (!PyFunction_Check(check.get()))
    interpreter.stop(fmt::format("asks a class whose {} is of type {}", name, Py_TYPE(check.get())->tp_name));
  return check;
}

// Whether the method belongs to the program. Those of libraries look at the class alone.
bool is_of_the_program(PyObject* check) {
  const std::string_view name = module_of(check);
  return name != "abc" && name != "typing" && name != "torch" && !name.starts_with("torch.");
}

// Whether classes can be registered with `classes`: an abstract class, a protocol, or a union of some.
bool may_be_registered_with(const Ref& own_check, PyObject* classes) {
  if (!own_check) return !PyType_Check(classes);
  return module_of(own_check.get()) == "abc" || module_of(own_check.get()) == "typing";
}

// Guards that no class is registered with any abstract class: abc counts registrations.
void require_no_new_registrations(Interpreter& interpreter) {
  PyObject* const count = well_known("_abc", "get_cache_token");
  const Ref now = Ref::steal(PyObject_CallNoArgs(count));
  const SourceId source = interpreter.guards().calculated(count, guards::kNoSource, guards::kNoSource);
  interpreter.guards().require(source, guards::CheckKind::Equal, now.get());
}

// Whether the object is a view or iterator of the copy of an external ordered dict. The copy is a plain dict.
bool shows_ordered_dict(Interpreter& interpreter, PyObject* object) {
  const bool is_view = PyDictKeys_Check(object) || PyDictValues_Check(object) || PyDictItems_Check(object);
  if (!is_view && !is_container_iterator(object)) return false;
  PyObject* dict = nullptr;
  const auto find = [](PyObject* found, void* result) {
    if (PyDict_Check(found)) *static_cast<PyObject**>(result) = found;
    return 0;
  };
  Py_TYPE(object)->tp_traverse(object, find, &dict);
  const auto copied = interpreter.shadows.copies.find(dict);
  return copied != interpreter.shadows.copies.end() && PyODict_Check(copied->second.get());
}

}  // namespace

PyTypeObject* class_seen(Interpreter& interpreter, PyObject* object) {
  if (is_unknown_traceback(object)) interpreter.stop("looks into a traceback");
  if (is_varying_number(object)) return varying_class(interpreter, object);
  if (is_generator(object) || is_coroutine(object)) return class_of_generator(interpreter, object);
  if (shows_ordered_dict(interpreter, object))
    interpreter.stop("tests the class of what shows an ordered dict");
  return Py_TYPE(object);
}

int instance_of(Interpreter& interpreter, PyObject* object, PyObject* classes) {
  PyTypeObject* const type = class_seen(interpreter, object);
  const bool stands_for_another = type != Py_TYPE(object);
  if (reinterpret_cast<PyObject*>(type) == classes) return 1;
  if (PyTuple_Check(classes)) {
    const Ref each = materialize(interpreter, classes);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(each.get()); ++i)
      if (const int result = instance_of(interpreter, object, PyTuple_GET_ITEM(each.get(), i)); result != 0)
        return result;
    return 0;
  }
  guard_resolution_order(interpreter, type);
  const Ref own = own_check(interpreter, classes, "__instancecheck__");
  const bool can_change = PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE) && !trace::is_trace_tensor(object);
  const bool names_its_class = can_change && !stands_for_another && overrides_class(interpreter, object);
  const bool is_derived =
      PyType_Check(classes) && PyType_IsSubtype(type, reinterpret_cast<PyTypeObject*>(classes));
  if (can_change && !stands_for_another && !is_derived &&
      has_python_special(interpreter, object, "__getattribute__"))
    interpreter.stop("asks an object for its __class__, by its own __getattribute__");
  if (own && can_change && module_of(own.get()) == "typing") interpreter.stop("isinstance() of a protocol");
  if (own && is_of_the_program(own.get())) {
    const Ref check = special_method(interpreter, classes, "__instancecheck__");
    const Ref answer = check ? call_positional(interpreter, check.get(), {Ref::borrow(object)}) : Ref();
    bool error = false;
    const bool result = answer && truth(interpreter, answer.get(), &error);
    return !answer || error ? -1 : result;
  }
  if (trace::is_trace_tensor(object)) {
    if (c_class_name(Py_TYPE(classes)) == "torch.tensortype")
      interpreter.stop("isinstance() of a class that stands for a type of elements");
    // A tensor may be marked as a parameter or buffer by an attribute.
    for (const char* mark : {"_is_param", "_is_buffer"}) {
      if (!own || module_of(own.get()) != "torch.nn.parameter") break;
      if (!get_attribute(interpreter, object, interned(mark).get())) PyErr_Clear();
    }
  }
  const bool by_class = stands_for_another || names_its_class;
  // Without an `__instancecheck__` in Python, isinstance() does not call `__subclasscheck__` either.
  const auto is_below = [&](PyObject* asked) {
    return own || !PyType_Check(classes) ? PyObject_IsSubclass(asked, classes)
                                         : PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(asked),
                                                            reinterpret_cast<PyTypeObject*>(classes));
  };
  int result = by_class ? is_below(reinterpret_cast<PyObject*>(type)) : PyObject_IsInstance(object, classes);
  if (names_its_class && result == 0) {
    const Ref named = get_attribute(interpreter, object, interned("__class__").get());
    PyErr_Clear();
    if (!named || !PyType_Check(named.get())) interpreter.stop("asks an object that names its own class");
    result = is_below(named.get());
  }
  if (by_class && result < 0) {  // the error is about issubclass()
    PyErr_Clear();
    interpreter.stop("isinstance() of what is no class");
  }
  // The yes of an abstract class holds for ever, its no until a class is registered.
  if (result == 0 && may_be_registered_with(own, classes)) require_no_new_registrations(interpreter);
  return result;
}

int subclass_of(Interpreter& interpreter, PyObject* type, PyObject* classes) {
  if (PyTuple_Check(classes)) {
    const Ref each = materialize(interpreter, classes);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(each.get()); ++i)
      if (const int result = subclass_of(interpreter, type, PyTuple_GET_ITEM(each.get(), i)); result != 0)
        return result;
    return 0;
  }
  if (PyType_Check(type)) guard_resolution_order(interpreter, reinterpret_cast<PyTypeObject*>(type));
  const Ref own = own_check(interpreter, classes, "__subclasscheck__");
  const bool can_change =
      PyType_Check(type) && PyType_HasFeature(reinterpret_cast<PyTypeObject*>(type), Py_TPFLAGS_HEAPTYPE);
  if (own && (is_of_the_program(own.get()) || (can_change && module_of(own.get()) == "typing")))
    interpreter.stop("issubclass() of a class with its own check");
  const int result = PyObject_IsSubclass(type, classes);
  if (result == 0 && may_be_registered_with(own, classes)) require_no_new_registrations(interpreter);
  return result;
}

}  // namespace oxy::eval
