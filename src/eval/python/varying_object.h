// The object that a program holds in the place of a number that varies. Its type has no operations. So code
// that does not expect it fails, which ends the capture. numbers/varying_number.h knows the number.
#pragma once

#include <Python.h>

namespace oxy::eval {

bool is_varying_number(PyObject* object);
// A new reference.
PyObject* new_varying_object();
// Whether a slice or torch.Size has a varying number among its parts. False for other objects.
bool has_varying_part(PyObject* object);

}  // namespace oxy::eval
