// Floats of the program's that change from call to call. A float is a constant of the first compilation,
// guarded; a place whose float was another one at a later call holds a *varying* float from then on: an input
// of the graph, a tensor of no dimensions, as far as only arithmetic is done with it. Wherever its value is
// looked at otherwise it is the constant that it is, guarded.
//
// In the evaluated program such a float is an object of a type of its own that can do nothing: C code that is
// given one by mistake raises a TypeError, which leaves the region to eager.
#pragma once

#include <Python.h>

#include <ATen/core/Tensor.h>

#include "cpy/ref.h"

namespace oxy::eval {

// A new one (the type has no constructor that programs could reach).
cpy::Ref new_varying_float();
bool is_varying_float(PyObject* object);

}  // namespace oxy::eval
