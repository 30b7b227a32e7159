// Comparisons: `==`, `<` and the like, also as containers make them. evaluation.h declares compare().
#pragma once

#include "eval/state/interpreter.h"

namespace oxy::eval {

// `left is right or left == right`, as containers compare items: 1, 0, or -1 with an exception set.
int is_or_equals(Interpreter& interpreter, PyObject* left, PyObject* right);
// Calls `bound`, a method `__eq__` or `__ne__` of a C type. `inverted`: it is the `__ne__` of object.
Ref call_equality(Interpreter& interpreter, PyObject* bound, PyObject* self, bool inverted, PyObject* other);

}  // namespace oxy::eval
