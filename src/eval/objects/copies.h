// copy.copy() and copy.deepcopy().
#pragma once

#include <Python.h>

#include "cpy/ref.h"
#include "eval/state/interpreter.h"

namespace oxy::eval {

// copy.deepcopy(object, memo). `memo`: the copies made so far, by object. `depth`: of the recursion; stops if
// objects nest too deep.
Ref deep_copy(Interpreter& interpreter, PyObject* object, std::unordered_map<PyObject*, Ref>& memo,
              int depth = 0);

class Interpreter;

// object.__reduce_ex__(protocol), which copy.copy() uses, for an object that consists of its class and its
// __dict__. Null, without an exception, for any other object.
cpy::Ref reduced_object(Interpreter& interpreter, PyObject* object, PyObject* protocol);

}  // namespace oxy::eval
