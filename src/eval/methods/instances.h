// Making objects of a class.
#pragma once

#include "eval/state/interpreter.h"

namespace oxy::eval {

// Whether object.__new__ (makes) or object.__init__ take arguments for an object of the type, which they do
// if the type has its own one of the other alone; raises if not. Source: CPython's Objects/typeobject.c.
bool object_takes(Interpreter& interpreter, PyTypeObject* type, bool makes, bool has_arguments);
Ref call_type(Interpreter& interpreter, PyTypeObject* type, Arguments arguments);
// type.__call__: what a metaclass has is passed by
Ref make_instance(Interpreter& interpreter, PyTypeObject* type, Arguments arguments);
Ref call_c_new(Interpreter& interpreter, PyObject* bound, Arguments arguments);

}  // namespace oxy::eval
