// `==`, `<` and the like, as containers ask for them too.
#pragma once

#include "eval/state/interpreter.h"

namespace oxy::eval {

// as containers compare items; -1: an exception is set
int is_or_equals(Interpreter& interpreter, PyObject* left, PyObject* right);
Ref call_equality(Interpreter& interpreter, PyObject* bound, PyObject* self, bool inverted, PyObject* other);

}  // namespace oxy::eval
