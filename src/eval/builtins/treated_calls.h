// Calls of callables that the user has marked (python/treatment.h).
#pragma once

#include "eval/state/interpreter.h"
#include "eval/treatment/treatment.h"

namespace oxy::eval {

// Calls the callable as its mark says. Stops if it is disabled.
Ref call_treated(Interpreter& interpreter, const Treatment& treatment, PyObject* callable,
                 const Arguments& arguments);
// Calls the callable for real, and takes the result for a constant. `runs_code`: it may read what its
// arguments hold; false: it compares them with others, and no more.
Ref call_for_constant(Interpreter& interpreter, PyObject* callable, const Arguments& arguments,
                      bool runs_code = true);

}  // namespace oxy::eval
