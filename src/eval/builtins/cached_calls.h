// Calls of functions with a functools.lru_cache.
#pragma once

#include "eval/state/interpreter.h"

namespace oxy::eval {

// If the cache has the answer, the function is called for real. The result is a constant, and it is guarded
// that the cache still holds it. Otherwise throws a Break, of kind MissingAnswer if a later call may find the
// answer.
Ref call_cached(Interpreter& interpreter, PyObject* callable, Arguments arguments);

}  // namespace oxy::eval
