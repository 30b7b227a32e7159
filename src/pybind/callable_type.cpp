#include "pybind/callable_type.h"

#include <structmember.h>

#include <memory>

namespace oxy::pybind {
namespace {

using driver::CompiledCallable;

struct CallableObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject* dict;
  PyObject* weak_references;
  CompiledCallable* callable;
};

CallableObject* cast(PyObject* self) {
  return reinterpret_cast<CallableObject*>(self);
}

PyObject* vectorcall(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  if (!cast(self)->callable) {
    PyErr_SetString(PyExc_RuntimeError, "the compiled function is being deleted");
    return nullptr;
  }
  try {
    return cast(self)->callable->call(args, nargsf, kwnames);
  } catch (const std::exception& error) {
    PyErr_Format(PyExc_RuntimeError, "oxyfuel internal error: %s", error.what());
    return nullptr;
  }
}

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(cast(self)->dict);
  return cast(self)->callable ? cast(self)->callable->traverse(visit, arg) : 0;
}

int clear(PyObject* self) {
  Py_CLEAR(cast(self)->dict);
  std::unique_ptr<CompiledCallable> doomed(std::exchange(cast(self)->callable, nullptr));
  return 0;
}

void deallocate(PyObject* self) {
  PyObject_GC_UnTrack(self);
  if (cast(self)->weak_references) PyObject_ClearWeakRefs(self);
  clear(self);
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

// As a function in a class body: an attribute of an instance is a bound method, unless it was made static.
PyObject* descriptor_get(PyObject* self, PyObject* object, PyObject*) {
  CompiledCallable* callable = cast(self)->callable;
  if (callable && Py_TYPE(callable->target()) == &PyStaticMethod_Type) return Py_NewRef(self);
  return object && object != Py_None ? PyMethod_New(self, object) : Py_NewRef(self);
}

PyMemberDef kMembers[] = {
    {"__dictoffset__", T_PYSSIZET, offsetof(CallableObject, dict), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(CallableObject, weak_references), READONLY, nullptr},
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(CallableObject, vectorcall), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};

// Borrowed. Null with an error set while the object is being deleted.
PyObject* target_of(PyObject* self) {
  if (cast(self)->callable) return cast(self)->callable->target();
  PyErr_SetString(PyExc_AttributeError, "the compiled function is being deleted");
  return nullptr;
}

PyObject* get_wrapped(PyObject* self, void*) {
  return Py_XNewRef(target_of(self));
}

// What programs look at in functions.
PyObject* get_of_wrapped(PyObject* self, void* name) {
  PyObject* target = target_of(self);
  return target ? PyObject_GetAttrString(target, static_cast<const char*>(name)) : nullptr;
}

template <size_t size>
constexpr PyGetSetDef of_wrapped(const char (&name)[size]) {
  return {name, &get_of_wrapped, nullptr, "As the function that is compiled has it.",
          const_cast<char*>(name)};
}

PyGetSetDef kGetSet[] = {{"__wrapped__", &get_wrapped, nullptr, "The function that is compiled.", nullptr},
                         of_wrapped("__code__"),
                         of_wrapped("__defaults__"),
                         of_wrapped("__kwdefaults__"),
                         of_wrapped("__closure__"),
                         of_wrapped("__globals__"),
                         {"__dict__", &PyObject_GenericGetDict, &PyObject_GenericSetDict, nullptr, nullptr},
                         {nullptr, nullptr, nullptr, nullptr, nullptr}};

}  // namespace

PyTypeObject* callable_type() {
  static PyObject* type = nullptr;
  cpy::made_once(type, [] {
    static PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(&deallocate)},
                                  {Py_tp_traverse, reinterpret_cast<void*>(&traverse)},
                                  {Py_tp_clear, reinterpret_cast<void*>(&clear)},
                                  {Py_tp_call, reinterpret_cast<void*>(&PyVectorcall_Call)},
                                  {Py_tp_descr_get, reinterpret_cast<void*>(&descriptor_get)},
                                  {Py_tp_members, kMembers},
                                  {Py_tp_getset, kGetSet},
                                  {0, nullptr}};
    static PyType_Spec spec = {"oxyfuel.CompiledFunction", sizeof(CallableObject), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
                                   Py_TPFLAGS_DISALLOW_INSTANTIATION,
                               slots};
    return PyType_FromSpec(&spec);
  });
  return reinterpret_cast<PyTypeObject*>(type);
}

PyObject* make_callable(PyObject* target, const driver::CallableOptions& options) {
  PyTypeObject* type = callable_type();
  if (!type) return nullptr;
  PyObject* self = type->tp_alloc(type, 0);
  if (!self) return nullptr;
  cast(self)->vectorcall = &vectorcall;
  cast(self)->callable = new CompiledCallable(target, options);
  return self;
}

driver::CompiledCallable* unwrap_callable(PyObject* object) {
  return Py_TYPE(object) == callable_type() ? cast(object)->callable : nullptr;
}

}  // namespace oxy::pybind
