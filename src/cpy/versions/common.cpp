// First: it decides what Python.h declares.
#include "cpy/internals.h"

#include <pthread.h>
#include <structmember.h>

#include <algorithm>
#include <cstddef>
#include <new>
#include <span>
#include <string_view>

#include "base/error.h"
#include "cpy/code_extra.h"
#include "cpy/dict.h"
#include "cpy/digits.h"
#include "cpy/object_dict.h"
#include "cpy/ref.h"
#include "cpy/thread.h"
#include "cpy/type.h"
#include "cpy/versions/shared.h"

namespace oxy::cpy {
namespace {

struct StackBounds {
  uintptr_t low = 0;
  size_t size = 0;
};

StackBounds stack_bounds() {
  StackBounds bounds;
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return bounds;
  void* low = nullptr;
  if (pthread_attr_getstack(&attributes, &low, &bounds.size) == 0)
    bounds.low = reinterpret_cast<uintptr_t>(low);
  pthread_attr_destroy(&attributes);
  return bounds;
}

// A function that does nothing: calling it lets the eval loop serve what only the eval loop can. Null with an
// error set if it could not be made.
PyObject* visit_function() {
  static PyObject* function = nullptr;
  return made_once(function, [] {
    const Ref globals = Ref::steal(PyDict_New());
    if (!globals) return static_cast<PyObject*>(nullptr);
    const Ref done =
        Ref::steal(PyRun_String("def visit(): pass", Py_file_input, globals.get(), globals.get()));
    return done ? Py_XNewRef(PyDict_GetItemString(globals.get(), "visit")) : nullptr;
  });
}

}  // namespace

bool is_native_stack_deep() {
  static thread_local const StackBounds bounds = stack_bounds();
  const auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  return bounds.size != 0 && here - bounds.low < bounds.size / 2;
}

bool is_finalizing() {
#if PY_VERSION_HEX >= 0x030D0000
  return Py_IsFinalizing();
#else
  return _Py_IsFinalizing();
#endif
}

bool serve_exceptions(PyThreadState* thread) {
  if (PyErr_CheckSignals() < 0) return false;
  if (Ref exception = take_async_exception(thread)) {
    PyErr_SetNone(exception.get());
    return false;
  }
  return true;
}

bool serve_requests(PyThreadState* thread) {
  if (!serve_exceptions(thread)) return false;
  if (!has_requests(thread)) return true;
  return bool(Ref::steal(visit()));
}

PyObject* visit() {
  PyObject* function = visit_function();
  return function == nullptr ? nullptr : PyObject_CallNoArgs(function);
}

Ref dict_keys(PyObject* dict) {
  if (PyODict_Check(dict)) {
    Ref iterator = Ref::steal(PyODict_Type.tp_iter(dict));
    return iterator ? Ref::steal(PySequence_Tuple(iterator.get())) : Ref();
  }
  Ref keys = Ref::steal(PyTuple_New(PyDict_GET_SIZE(dict)));
  PyObject* key = nullptr;
  Py_ssize_t position = 0, i = 0;
  while (keys && PyDict_Next(dict, &position, &key, nullptr))
    PyTuple_SET_ITEM(keys.get(), i++, Py_NewRef(key));
  return keys;
}

int64_t find_unicode_key(PyDictKeysObject* keys, PyObject* name) {
  if (keys->dk_kind == DICT_KEYS_GENERAL) return -1;
  const PyDictUnicodeEntry* entries = DK_UNICODE_ENTRIES(keys);
  const Py_ssize_t count = keys->dk_nentries;
  for (Py_ssize_t i = 0; i < count; ++i)
    if (entries[i].me_key == name) return i;
  for (Py_ssize_t i = 0; i < count; ++i)
    if (entries[i].me_key != nullptr && PyUnicode_Compare(entries[i].me_key, name) == 0) return i;
  return -1;
}

int64_t inline_index(const InlineValues& values, PyObject* name) {
  return find_unicode_key(static_cast<PyDictKeysObject*>(const_cast<void*>(values.keys)), name);
}

namespace {

// Attributes that functions of Python's read for a descriptor, though they are plain pointers of the object.
struct NamedPlace {
  std::string_view name;
  size_t offset;
};

constexpr NamedPlace kPlacesOfFunctions[] = {
    {"__code__", offsetof(PyFunctionObject, func_code)},
    {"__defaults__", offsetof(PyFunctionObject, func_defaults)},
    {"__kwdefaults__", offsetof(PyFunctionObject, func_kwdefaults)},
    {"__annotations__", offsetof(PyFunctionObject, func_annotations)},
    {"__name__", offsetof(PyFunctionObject, func_name)},
    {"__qualname__", offsetof(PyFunctionObject, func_qualname)}};
constexpr NamedPlace kPlacesOfClasses[] = {{"__name__", offsetof(PyHeapTypeObject, ht_name)},
                                           {"__qualname__", offsetof(PyHeapTypeObject, ht_qualname)}};

PyObject* const* at_offset(PyObject* object, size_t offset) {
  return reinterpret_cast<PyObject* const*>(reinterpret_cast<char*>(object) + offset);
}

PyObject* const* computed_place(PyObject* descriptor, PyObject* object) {
  const auto* own = reinterpret_cast<PyGetSetDescrObject*>(descriptor);
  std::span<const NamedPlace> places;
  if (own->d_common.d_type == &PyFunction_Type && PyFunction_Check(object)) places = kPlacesOfFunctions;
  if (own->d_common.d_type == &PyType_Type && PyType_Check(object) &&
      PyType_HasFeature(reinterpret_cast<PyTypeObject*>(object), Py_TPFLAGS_HEAPTYPE))
    places = kPlacesOfClasses;
  const auto found = std::ranges::find(places, std::string_view(own->d_getset->name), &NamedPlace::name);
  return found == places.end() ? nullptr : at_offset(object, found->offset);
}

}  // namespace

PyObject* const* member_place(PyObject* descriptor, PyObject* object) {
  if (Py_IS_TYPE(descriptor, &PyGetSetDescr_Type)) return computed_place(descriptor, object);
  if (!Py_IS_TYPE(descriptor, &PyMemberDescr_Type)) return nullptr;
  const auto* own = reinterpret_cast<PyMemberDescrObject*>(descriptor);
  const PyMemberDef* member = own->d_member;
  const bool is_object = member->type == T_OBJECT || member->type == T_OBJECT_EX;
  if (!is_object || !PyObject_TypeCheck(object, own->d_common.d_type)) return nullptr;
  return at_offset(object, static_cast<size_t>(member->offset));
}

PyObject* existing_dict(PyObject* object) {
  PyObject* const* place = dict_place(object);
  return place == nullptr ? nullptr : *place;
}

PyObject* instance_value(PyObject* object, PyObject* name) {
  if (PyObject* dict = existing_dict(object)) {
    PyObject* value = PyDict_GetItemWithError(dict, name);
    if (value == nullptr) PyErr_Clear();
    return value;
  }
  const InlineValues values = inline_values(object);
  if (!values) return nullptr;
  const int64_t index = inline_index(values, name);
  return index < 0 ? nullptr : values.values[size_t(index)];
}

uint32_t assign_type_version(PyTypeObject* type) {
  if (const uint32_t version = type_version(type)) return version;
  // Looking up any attribute fills the method cache, which needs a version.
  static PyObject* name = PyUnicode_InternFromString("__oxyfuel_version__");
  if (name != nullptr) _PyType_Lookup(type, name);
  PyErr_Clear();
  return type_version(type);
}

Ref lookup_special(PyObject* object, PyObject* name) {
  PyTypeObject* type = Py_TYPE(object);
  Ref found = Ref::borrow(_PyType_Lookup(type, name));
  if (!found) return found;
  const descrgetfunc bind = Py_TYPE(found.get())->tp_descr_get;
  return bind == nullptr ? found : Ref::steal(bind(found.get(), object, reinterpret_cast<PyObject*>(type)));
}

bool find_method(PyObject* object, PyObject* name, Ref& found) {
  PyObject* value = nullptr;
  const bool is_method = _PyObject_GetMethod(object, name, &value);
  found = Ref::steal(value);
  return is_method;
}

bool is_called_plainly(PyObject* callable) {
  return PyFunction_Check(callable) && visit_function() != nullptr &&
         reinterpret_cast<PyFunctionObject*>(callable)->vectorcall ==
             reinterpret_cast<PyFunctionObject*>(visit_function())->vectorcall;
}

CodeExtra::CodeExtra(void (*free)(void*)) : index_(request_code_extra(free)) {
  check(index_ >= 0, "CPython has no code-extra slot left");
}

PyObject* viewed_dict(PyObject* view) {
  return reinterpret_cast<PyObject*>(reinterpret_cast<_PyDictViewObject*>(view)->dv_dict);
}

int most_digits() {
  const PyInterpreterState* const interpreter = PyInterpreterState_Get();
#if PY_VERSION_HEX >= 0x030C0000
  return interpreter->long_state.max_str_digits;
#else
  return interpreter->int_max_str_digits;
#endif
}

}  // namespace oxy::cpy
