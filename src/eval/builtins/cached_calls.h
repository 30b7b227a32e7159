// Functions that keep their results: functools.lru_cache.
#pragma once

#include "eval/state/interpreter.h"

namespace oxy::eval {

// of functools.lru_cache
Ref call_cached(Interpreter& interpreter, PyObject* callable, Arguments arguments);

}  // namespace oxy::eval
