#include "eval/objects/copies.h"

#include <fmt/format.h>

#include <array>

#include "cpy/set.h"
#include "eval/externals/admission.h"
#include "eval/externals/external_containers.h"
#include "eval/externals/hashing.h"
#include "eval/externals/type_lookup.h"
#include "eval/python/objects.h"
#include "eval/state/evaluation.h"
#include "eval/state/interpreter.h"

namespace oxy::eval {

namespace {

// The attributes that decide how objects of a class are copied.
constexpr std::array<const char*, 8> kCopyNames = {"__deepcopy__",      "__reduce_ex__", "__reduce__",
                                                   "__getstate__",      "__setstate__",  "__getnewargs__",
                                                   "__getnewargs_ex__", "__new__"};

// Whether the object has code for attributes that it lacks, which copying asks for. (The `__getattr__` of
// nn.Module only raises, and does not count.)
bool answers_lookups_itself(Interpreter& interpreter, PyObject* object) {
  if (has_python_special(interpreter, object, "__getattribute__")) return true;
  if (!has_python_special(interpreter, object, "__getattr__")) return false;
  PyObject* const module_class = well_known("torch.nn", "Module");
  const Ref name = interned("__getattr__");
  return !module_class || type_lookup(interpreter, Py_TYPE(object), name.get()) !=
                              _PyType_Lookup(reinterpret_cast<PyTypeObject*>(module_class), name.get());
}

// Whether the type's metaclass has no code that copying would run. Copying hashes the class, reads attributes
// of it, and stores the names of its slots in it.
bool has_usual_metaclass(Interpreter& interpreter, PyTypeObject* type) {
  auto* const class_object = reinterpret_cast<PyObject*>(type);
  return !finds_attributes_itself(interpreter, class_object) &&
         !has_python_special(interpreter, class_object, "__setattr__") &&
         !has_python_special(interpreter, class_object, "__hash__") &&
         !has_python_special(interpreter, class_object, "__eq__");
}

// Whether the object, asked for the attribute as copying does, gives the method of `object`.
bool gives_usual_method(Interpreter& interpreter, PyObject* object, const char* name) {
  const Ref found = get_attribute(interpreter, object, interned(name).get());
  PyErr_Clear();
  return found && PyCFunction_Check(found.get()) && PyCFunction_GET_SELF(found.get()) == object &&
         std::string_view(reinterpret_cast<PyCFunctionObject*>(found.get())->m_ml->ml_name) == name;
}

bool lacks(Interpreter& interpreter, PyObject* object, const char* name) {
  const bool found = static_cast<bool>(get_attribute(interpreter, object, interned(name).get()));
  const bool is_missing = !found && PyErr_ExceptionMatches(PyExc_AttributeError);
  PyErr_Clear();
  return is_missing;
}

}  // namespace

Ref reduced_object(Interpreter& interpreter, PyObject* object, PyObject* protocol) {
  PyTypeObject* const type = Py_TYPE(object);
  if (!PyLong_CheckExact(protocol) || PyLong_AsLong(protocol) < 2 || !is_python_class(type) ||
      native_base(type) != &PyBaseObject_Type || !has_usual_metaclass(interpreter, type))
    return {};
  if (answers_lookups_itself(interpreter, object) &&
      !(gives_usual_method(interpreter, object, "__reduce__") &&
        gives_usual_method(interpreter, object, "__getstate__")))
    return {};
  const auto looked_up = [&](const char* name) {
    return type_lookup(interpreter, type, interned(name).get());
  };
  for (const char* name : {"__reduce_ex__", "__reduce__", "__getstate__"}) {
    const Ref method = looked_up(name);  // there is no object.__getstate__ before Python 3.11
    if (method &&
        (Py_TYPE(method.get()) != &PyMethodDescr_Type || PyDescr_TYPE(method.get()) != &PyBaseObject_Type))
      return {};
  }
  for (const char* name : {"__getnewargs_ex__", "__getnewargs__", "__slots__"})
    if (looked_up(name)) return {};
  PyObject* const make = well_known("copyreg", "__newobj__");
  const Ref dict = generic_get_attribute(interpreter, object, interned("__dict__").get());
  if (!make || !dict) return {};
  const Ref class_of = pin(interpreter, reinterpret_cast<PyObject*>(type));
  const Ref args = Ref::steal(PyTuple_Pack(1, class_of.get()));
  const Py_ssize_t size = interpreter.externals.is_external(dict.get()) ? size_of(interpreter, dict.get())
                                                                        : PyDict_GET_SIZE(dict.get());
  PyObject* const state = size == 0 ? Py_None : dict.get();
  return Ref::steal(PyTuple_Pack(5, pin(interpreter, make).get(), args.get(), state, Py_None, Py_None));
}

Ref deep_copy(Interpreter& interpreter, PyObject* object, std::unordered_map<PyObject*, Ref>& memo,
              int depth) {
  // Python calls one or two functions a level, and reaches its recursion limit after some hundred.
  constexpr int kDeepest = 200;
  if (depth > kDeepest) interpreter.stop("deep copies objects nested too deeply");
  if (auto it = memo.find(object); it != memo.end()) return it->second;
  if (trace::is_trace_tensor(object)) interpreter.stop("deep copies a tensor");
  if (PyModule_Check(object)) interpreter.stop("deep copies a module");
  if (!PySlice_Check(object) &&
      (is_value_object(object) || (is_identity_object(object) && !PyFrozenSet_Check(object))))
    return Ref::borrow(object);
  auto keep = [&](Ref copy) {
    memo.emplace(object, copy);
    interpreter.externals.keep_alive.push_back(Ref::borrow(object));
    return copy;
  };
  if (PySlice_Check(object)) {
    auto* slice = reinterpret_cast<PySliceObject*>(object);
    Ref start = deep_copy(interpreter, slice->start, memo, depth + 1),
        end = deep_copy(interpreter, slice->stop, memo, depth + 1),
        step = deep_copy(interpreter, slice->step, memo, depth + 1);
    return keep(Ref::steal(PySlice_New(start.get(), end.get(), step.get())));
  }
  Ref shallow = materialize(interpreter, object);
  if (PyTuple_CheckExact(object)) {
    Ref list = Ref::steal(PyList_New(0));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(shallow.get()); ++i)
      PyList_Append(list.get(),
                    deep_copy(interpreter, PyTuple_GET_ITEM(shallow.get(), i), memo, depth + 1).get());
    // A tuple that contains itself was copied on the way.
    if (auto it = memo.find(object); it != memo.end()) return it->second;
    bool same = true;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(shallow.get()); ++i)
      same = same && PyList_GET_ITEM(list.get(), i) == PyTuple_GET_ITEM(shallow.get(), i);
    return keep(same ? Ref::borrow(object) : Ref::steal(PyList_AsTuple(list.get())));
  }
  if (PyList_CheckExact(object)) {
    Ref copy = keep(Ref::steal(PyList_New(0)));
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(shallow.get()); ++i)
      PyList_Append(copy.get(),
                    deep_copy(interpreter, PyList_GET_ITEM(shallow.get(), i), memo, depth + 1).get());
    return copy;
  }
  auto copy_pairs = [&](PyObject* from, auto&& store) {
    PyObject *key = nullptr, *value = nullptr;
    Py_ssize_t position = 0;
    while (PyDict_Next(from, &position, &key, &value)) {
      Ref new_key = deep_copy(interpreter, key, memo, depth + 1),
          new_value = deep_copy(interpreter, value, memo, depth + 1);
      store(new_key.get(), new_value.get());
    }
  };
  if (PyDict_CheckExact(object)) {
    Ref copy = keep(Ref::steal(PyDict_New()));
    copy_pairs(shallow.get(),
               [&](PyObject* key, PyObject* value) { PyDict_SetItem(copy.get(), key, value); });
    return copy;
  }
  if (PyAnySet_CheckExact(object)) {
    Ref items = Ref::steal(PyList_New(0));
    for (PyObject* item : cpy::SetItems(shallow.get()))
      PyList_Append(items.get(), deep_copy(interpreter, item, memo, depth + 1).get());
    items = items_for_set(interpreter, items.get());
    return keep(
        Ref::steal(PyFrozenSet_Check(object) ? PyFrozenSet_New(items.get()) : PySet_New(items.get())));
  }
  PyTypeObject* const type = Py_TYPE(object);
  const auto refuse = [&](std::string_view why) {
    PyErr_Clear();
    interpreter.stop(fmt::format("deep copies an object of type {}{}", type->tp_name, why));
  };
  if (!has_usual_metaclass(interpreter, type)) refuse(" with a metaclass of its own");
  for (PyObject* registry :
       {well_known("copyreg", "dispatch_table"), well_known("copy", "_deepcopy_dispatch")}) {
    if (!registry || !PyDict_Check(registry)) refuse("");
    auto* const key = reinterpret_cast<PyObject*>(type);
    if (PyDict_Contains(registry, key)) refuse(" with a registered way to copy it");
    interpreter.guards().require(interpreter.guards().pinned(registry), guards::CheckKind::Absent, key);
  }
  for (const char* name : kCopyNames)
    if (has_python_special(interpreter, object, name)) refuse(fmt::format(" with its own {}", name));
  const bool answers_itself = answers_lookups_itself(interpreter, object);
  const auto gives = [&](const char* name) { return gives_usual_method(interpreter, object, name); };
  constexpr const char* kItsOwnAccess = " with its own access to attributes";
  if (answers_itself && !(lacks(interpreter, object, "__deepcopy__") && gives("__reduce_ex__") &&
                          gives("__reduce__") && gives("__getstate__")))
    refuse(kItsOwnAccess);
  if (type_lookup(interpreter, type, interned("__slots__").get())) refuse(" with slots");
  const Ref dict = generic_get_attribute(interpreter, object, interned("__dict__").get());
  if (!dict || type->tp_base == nullptr || type->tp_new != PyBaseObject_Type.tp_new) refuse("");
  const Ref state = materialize(interpreter, dict.get());
  for (const char* name : kCopyNames)
    if (PyDict_GetItemString(state.get(), name)) refuse(fmt::format(" with its own {}", name));
  const Ref no_args = Ref::steal(PyTuple_New(0));
  Ref copy = Ref::steal(type->tp_new(type, no_args.get(), nullptr));
  const Ref attributes = copy ? Ref::steal(PyObject_GenericGetDict(copy.get(), nullptr)) : Ref();
  if (!attributes) refuse("");
  keep(copy);
  const Ref copied = Ref::steal(PyDict_New());
  copy_pairs(state.get(), [&](PyObject* key, PyObject* value) { PyDict_SetItem(copied.get(), key, value); });
  // Copying asks the copy for attributes while it still has none.
  if (answers_itself && PyDict_GET_SIZE(copied.get()) > 0 &&
      !(lacks(interpreter, copy.get(), "__setstate__") &&
        get_attribute(interpreter, copy.get(), interned("__dict__").get()) == attributes.get()))
    refuse(kItsOwnAccess);
  PyDict_Update(attributes.get(), copied.get());
  return copy;
}

}  // namespace oxy::eval
