// Callables that the user has marked.
#pragma once

#include "eval/python/treatment.h"
#include "eval/state/interpreter.h"

namespace oxy::eval {

Ref call_treated(Interpreter& interpreter, const Treatment& treatment, PyObject* callable,
                 const Arguments& arguments);
Ref call_for_constant(Interpreter& interpreter, PyObject* callable, const Arguments& arguments);

}  // namespace oxy::eval
