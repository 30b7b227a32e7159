// How objects are copied by copy.copy() and copy.deepcopy().
#pragma once

#include <Python.h>

#include "cpy/ref.h"
#include "eval/state/interpreter.h"

namespace oxy::eval {

// copies.cpp
Ref deep_copy(Interpreter& interpreter, PyObject* object, std::unordered_map<PyObject*, Ref>& memo,
              int depth = 0);

class Interpreter;

// object.__reduce_ex__ of an object that is its class and its __dict__: what copy.copy() goes by. Null,
// without an exception: of another object.
cpy::Ref reduced_object(Interpreter& interpreter, PyObject* object, PyObject* protocol);

}  // namespace oxy::eval
