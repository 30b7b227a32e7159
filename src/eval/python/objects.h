// Kinds of Python objects, as the interpreter tells them apart. These functions need no interpreter: they
// look at types and fields, add no guards, run no code of the program's and set no exception.
#pragma once

#include <Python.h>

#include <functional>
#include <string>

#include "cpy/ref.h"

namespace oxy::eval {

// Objects that stay the same at every run: types, functions, modules, code, dtypes, devices, ranges, type
// expressions, operators ... External ones are guarded by identity. Any C code may be given them.
bool is_identity_object(PyObject* object);
// Objects that are equal to themselves only.
bool compares_identity(PyObject* object);
bool is_logger(PyObject* object);  // logging.Logger
// Immutable objects of C types that are compared by value and contain no other objects: constants, torch.Size
// of ints, slices and ranges of constants, dtypes, devices, matches of regular expressions.
bool is_value_object(PyObject* object);
bool is_match(PyObject* object);        // of a regular expression
bool is_enum_member(PyObject* object);  // that its class knows already: false while the class is being made
bool is_type_alias(PyObject* object);   // list[int] or int | str
// A Python object of typing or typing_extensions from which type annotations are built: List, List[int], a
// type variable.
bool is_type_expression(PyObject* object);
bool makes_type_expressions(PyTypeObject* type);
// Type expressions and the objects of torch.ops. Their __hash__ and __eq__ are Python code of a library that
// looks at nothing that changes.
bool compares_in_library(PyObject* object);
// Exactly list, tuple, dict or set (not a subclass), or a dict subclass of the standard library's C code.
bool is_builtin_container(PyObject* object);
// A list, tuple, dict or set, a deque, or an object of a subclass that adds to the C code of one of these.
bool is_container(PyObject* object);
// The one str of this text that names are looked up by.
cpy::Ref interned(std::string_view name);
// Whether `derived` has another method of this name than its base class `base`.
inline bool is_overridden(PyTypeObject* derived, PyTypeObject* base, const char* method) {
  const cpy::Ref name = interned(method);
  return _PyType_Lookup(derived, name.get()) != _PyType_Lookup(base, name.get());
}
// Sets KeyError(key). (PyErr_SetObject() would take a tuple for the arguments of the exception.)
void set_key_error(PyObject* key);
bool is_dict_like(PyObject* object);           // dict, OrderedDict, defaultdict: exact types
bool is_container_iterator(PyObject* object);  // over a dict, one of its views, or a set
// The type itself, or else its nearest base, that no class statement has made. Its tp_new makes the
// instances.
PyTypeObject* native_base(PyTypeObject* type);
cpy::Ref exception_arguments(PyObject* exception);  // the tuple `args`, even if its class hides the name
bool is_deque_type(PyTypeObject* type);
// A method of a C type, bound to an object that is not a module.
bool is_bound_c_method(PyObject* object);
// Whether the container that the iterator goes over has changed, so that iterating further is an error. Takes
// an item from the iterator.
bool has_changed(PyObject* iterator);
bool is_defaultdict_type(PyTypeObject* type);
// Callables of C types whose whole state is in their __reduce__: partial, itemgetter, attrgetter ...
bool is_reducible(PyObject* object);
bool is_builtin_iterator(PyObject* object);
// A class made by a class statement. Its instances have attributes and slots, and no state that only C code
// sees. (Py_TPFLAGS_HEAPTYPE does not tell: many types of C modules have it from Python 3.12 on.)
bool is_python_class(PyTypeObject* type);
// The full name of a C type; empty for a class made by a class statement, which may have any name.
std::string_view c_class_name(PyTypeObject* type);
// The unbound method behind `method`, a bound method of a container's C type or of a tensor; null for any
// other. CPython puts the unbound one on the stack.
PyObject* method_descriptor(PyObject* container, PyObject* method);
bool is_method_wrapper(PyObject* object);  // a special method of a C type, bound: (1).__add__
// A function object of CPython's.
inline bool is_python_function(PyObject* object) {
  return PyFunction_Check(object);
}

// The text of a str; empty for anything else. Valid as long as the object.
std::string_view text_of_str(PyObject* str);

// Whether `found`, a special method that was looked up in a class, is implemented in C. It runs code of the
// program's only through its arguments.
bool is_of_c(PyObject* found);

// Functions of torch that run for real on trace tensors: builtin functions and methods that are operators or
// pure queries, and Python functions of torch.nn.functional and a few other modules.
bool is_torch_function(PyObject* callable);
bool is_pybind_function(PyObject* function);  // a C++ function bound by pybind11
bool is_torch_tensor_type(
    PyTypeObject* type);  // Tensor, Parameter, Buffer: subclasses without behaviour of their own

// For reasons: the qualified name of a callable, or the kind of object it is.
std::string describe_callable(PyObject* callable);

// An object of a loaded module: well_known("torch.nn", "Parameter"). Borrowed and kept for ever, so a program
// that replaces it later is not noticed. Null if the module is not loaded.
PyObject* well_known(std::string_view module, std::string_view name);

// Whether one of the tensors in a nest of tuples, lists and dicts satisfies `wanted`.
bool any_tensor(PyObject* object, const std::function<bool(PyObject* tensor)>& wanted);

bool is_enum_class(PyObject* object);

}  // namespace oxy::eval
