// Making instances of classes.
#pragma once

#include "eval/state/interpreter.h"

namespace oxy::eval {

// Whether object.__new__ (`makes`), or else object.__init__, accepts the arguments of a call of the type. It
// accepts any if the type overrides the other one of the two alone. False: a TypeError is set. Source:
// CPython's Objects/typeobject.c.
bool object_takes(Interpreter& interpreter, PyTypeObject* type, bool makes, bool has_arguments);
// type(*arguments): calls the metaclass's `__call__` if it has one in Python, else make_instance().
Ref call_type(Interpreter& interpreter, PyTypeObject* type, Arguments arguments);
// type.__call__(type, *arguments): __new__ and __init__, without a `__call__` of the metaclass.
Ref make_instance(Interpreter& interpreter, PyTypeObject* type, Arguments arguments);
// Calls `bound`, the `__new__` of a C type. The class is the first argument.
Ref call_c_new(Interpreter& interpreter, PyObject* bound, Arguments arguments);

}  // namespace oxy::eval
