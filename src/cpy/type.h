// Types: whether one or a base of it has changed, in one comparison; look-ups as operators and calls make
// them.
#pragma once

#include <Python.h>

#include <cstdint>

#include "cpy/ref.h"

namespace oxy::cpy {

// The type's version. No other type has it, and the type loses it at any change to its attributes or those of
// its bases. 0: the type has none at present (assign_type_version()).
uint32_t type_version(PyTypeObject* type);

// Gives the type a version if it lacks one. 0 if that is impossible (the type forbids it, or numbers ran
// out). Then attributes have to be looked up again to notice a change.
uint32_t assign_type_version(PyTypeObject* type);

// The attributes of the type itself, without those of its bases.
Ref type_dict(PyTypeObject* type);

// The bound special method `name` (an interned str), looked up in the object's type as operators do. Null
// without an error if the type has none, null with an error if binding it failed.
Ref lookup_special(PyObject* object, PyObject* name);

// Looks `name` up on an object for a call. True: `found` is a function that takes the object as its first
// argument. False: `found` is the attribute's value, or null with an error set.
bool find_method(PyObject* object, PyObject* name, Ref& found);

// Whether a call of the object makes and runs one frame and does nothing else: it is a Python function
// without a vectorcall slot of its own.
bool is_called_plainly(PyObject* callable);

}  // namespace oxy::cpy
