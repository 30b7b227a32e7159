// Numbers of the program's that change from call to call. An int or a float is a constant of the first
// compilation, guarded; a place whose number was another one at a later call holds a *varying* number from
// then on. What is calculated from it is a varying number too, of a source that calculates it again
// (guards::SourceKind::Calculated). It becomes an input of the graph, a tensor of no dimensions, where a
// tensor is calculated with it; a comparison is guarded by its outcome; wherever a value is looked at
// otherwise it is the constant that it is, guarded.
//
// In the evaluated program such a number is an object of a type of its own that can do nothing: what looks at
// it without knowing of it fails, which ends the capture.
#pragma once

#include <Python.h>

namespace oxy::eval {

bool is_varying_number(PyObject* object);

}  // namespace oxy::eval
