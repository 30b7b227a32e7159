// Floats of the program's that change from call to call. A float is a constant of the first compilation,
// guarded; a place whose float was another one at a later call holds a *varying* float from then on: an input
// of the graph, a tensor of no dimensions, as far as only arithmetic is done with it. Wherever its value is
// looked at otherwise it is the constant that it is, guarded.
//
// In the evaluated program such a float is an object of a type of its own that can do nothing: what looks at
// it without knowing of it fails, which ends the capture.
#pragma once

#include <Python.h>

namespace oxy::eval {

bool is_varying_float(PyObject* object);

}  // namespace oxy::eval
