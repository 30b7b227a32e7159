// How objects are copied by copy.copy() and copy.deepcopy().
#pragma once

#include <Python.h>

#include "cpy/ref.h"

namespace oxy::eval {

class Evaluator;

// object.__reduce_ex__ of an object that is its class and its __dict__: what copy.copy() goes by. Null,
// without an exception: of another object.
cpy::Ref reduced_object(Evaluator& e, PyObject* object, PyObject* protocol);

}  // namespace oxy::eval
