// functools.partial objects, read with guards.
#pragma once

#include <optional>

#include "eval/state/interpreter.h"

namespace oxy::eval {

// Exactly a functools.partial.
bool is_partial(PyObject* object);

// The call that a call of a partial amounts to.
struct OpenedPartial {
  cpy::Ref function;
  Arguments arguments;
};

// Precondition: is_partial(). Nothing: a Python exception is set.
std::optional<OpenedPartial> opened_partial(Interpreter& interpreter, PyObject* partial, Arguments arguments);

}  // namespace oxy::eval
