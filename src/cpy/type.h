// Whether a type, or anything in its method resolution order, changed, in one comparison.
#pragma once

#include <Python.h>

#include <cstdint>

#include "cpy/ref.h"

namespace oxy::cpy {

// The type's version: no other type has it, and any change to the attributes of the type or of its bases
// takes it away. 0: the type has none at present; see assign_type_version.
uint32_t type_version(PyTypeObject* type);

// Gives the type a version if it lacks one. 0 if that is impossible (a type that forbids it, or numbers ran
// out): then nothing short of looking attributes up again tells whether the type changed.
uint32_t assign_type_version(PyTypeObject* type);

// The attributes of the type itself, without those of its bases.
Ref type_dict(PyTypeObject* type);

// The bound special method `name` (an interned str), looked up in the object's type as operators do. Null
// without an error if the type has none; null with an error if binding it failed.
Ref lookup_special(PyObject* object, PyObject* name);

// Looks `name` up on an object for a call. True: `found` is a function that takes the object as its first
// argument. False: `found` is the attribute's value, or null with an error set.
bool find_method(PyObject* object, PyObject* name, Ref& found);

// Whether calling the object does no more than make and run one frame for it: a Python function without a
// call slot of its own.
bool is_called_plainly(PyObject* callable);

}  // namespace oxy::cpy
