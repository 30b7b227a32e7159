// Kinds of Python objects, as the interpreter tells them apart.
#pragma once

#include <Python.h>

#include <functional>
#include <string>

#include "cpy/ref.h"

namespace oxy::eval {

// Immutable objects of C types that are themselves at every run: guarded by identity when they come from
// outside, free to be shown to any C code: types, functions and modules of C or Python, code, dtypes,
// devices, ranges, type expressions, operators ...
bool is_identity_object(PyObject* object);
// Objects that are equal to themselves only.
bool compares_identity(PyObject* object);
bool is_logger(PyObject* object);  // logging.Logger
// Objects of immutable C types that are compared by value and never contain others: constants, torch.Size of
// ints, slices and ranges of constants, dtypes, devices, matches of regular expressions.
bool is_value_object(PyObject* object);
bool is_match(PyObject* object);
bool is_enum_member(PyObject* object);  // that its class knows as one: not while the class is being made
bool is_type_alias(PyObject* object);   // list[int] or int | str
// What typing, or typing_extensions, makes types of and is a Python object there: List, List[int], a type
// variable.
bool is_type_expression(PyObject* object);
bool makes_type_expressions(PyTypeObject* type);
// These, and the objects of torch.ops: Python objects whose own __hash__ and __eq__ are the library's and
// look at nothing that changes.
bool compares_in_library(PyObject* object);
// Exactly list, tuple, dict or set (not a subclass), or a dict subclass of the standard library's C code.
bool is_builtin_container(PyObject* object);
// A list, tuple, dict or set, a deque, or an object of a subclass that adds to the C code of one of these.
bool is_container(PyObject* object);
// The one str of this text that names are looked up by.
inline cpy::Ref interned(const char* name) {
  return cpy::Ref::steal(PyUnicode_InternFromString(name));
}
// Whether a class has a method that another, which it is derived from, lacks or has otherwise.
inline bool is_overridden(PyTypeObject* derived, PyTypeObject* base, const char* method) {
  const cpy::Ref name = interned(method);
  return _PyType_Lookup(derived, name.get()) != _PyType_Lookup(base, name.get());
}
// Sets the KeyError of a key that is missing, whatever the key is: a tuple would be taken for its arguments.
void set_key_error(PyObject* key);
bool is_dict_like(PyObject* object);           // dict, OrderedDict, defaultdict: exact types
bool is_container_iterator(PyObject* object);  // over a dict, one of its views, or a set
// The nearest base, or the type itself, that no class statement made: its tp_new makes the instances.
PyTypeObject* native_base(PyTypeObject* type);
cpy::Ref exception_arguments(PyObject* exception);  // its `args`, whatever its class makes of the name
bool is_deque_type(PyTypeObject* type);
// A method of C code bound to an object that is no module.
bool is_bound_c_method(PyObject* object);
// True if what the iterator goes through does not let itself be iterated over any more. Takes an item.
bool has_changed(PyObject* iterator);
bool is_defaultdict_type(PyTypeObject* type);
// Callables of C code that hold nothing but what their __reduce__ tells: partial, itemgetter, attrgetter ...
bool is_reducible(PyObject* object);
bool is_builtin_iterator(PyObject* object);
// A class of a class statement: its instances hold attributes and slots and nothing that only C code sees.
// From Python 3.12 on many types of C modules are heap types too, so that flag does not tell.
bool is_python_class(PyTypeObject* type);
// The name of a class of C code's; empty for a class of a program's, which may have any name.
std::string_view c_class_name(PyTypeObject* type);
// What a bound method of a container's C type, or of a tensor, was made of, as CPython calls it; null
// for any other.
PyObject* method_descriptor(PyObject* container, PyObject* method);
bool is_method_wrapper(PyObject* object);  // a special method of a C type, bound: (1).__add__
// A function object that only CPython can run.
inline bool is_python_function(PyObject* object) {
  return PyFunction_Check(object);
}

// The text of a str; empty for anything else. Valid as long as the object.
std::string_view text_of_str(PyObject* str);

// Of what is found in a class under the name of a special method: C code has put it there. It runs no code of
// the program's but what it is given.
bool is_of_c(PyObject* found);

// torch: builtin functions and methods that are operators or pure queries, and Python functions of
// torch.nn.functional and its kin, which run for real on trace tensors.
bool is_torch_function(PyObject* callable);
bool is_pybind_function(PyObject* function);  // a C++ function bound by pybind11
bool is_torch_tensor_type(
    PyTypeObject* type);  // Tensor, Parameter, Buffer: subclasses without behaviour of their own

// The qualified name of a callable, or what kind of object it is.
std::string describe_callable(PyObject* callable);

// A named object of an imported module: well_known("torch.nn", "Parameter"). Borrowed, or null if the module
// is not loaded. Looked up once.
PyObject* well_known(const char* module, const char* name);

// Whether one of the tensors in a nest of tuples, lists and dicts satisfies `wanted`.
bool any_tensor(PyObject* object, const std::function<bool(PyObject* tensor)>& wanted);

bool is_enum_class(PyObject* object);

}  // namespace oxy::eval
