// What a functools.partial holds, read with guards.
#pragma once

#include <optional>

#include "eval/state/interpreter.h"

namespace oxy::eval {

// Exactly a functools.partial.
bool is_partial(PyObject* object);

// A call of what the partial calls.
struct OpenedPartial {
  cpy::Ref function;
  Arguments arguments;
};

// The call that a call of `partial` with `arguments` stands for. None: a Python error is set.
std::optional<OpenedPartial> opened_partial(Interpreter& interpreter, PyObject* partial, Arguments arguments);

}  // namespace oxy::eval
