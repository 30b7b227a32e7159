// NumPy scalars (numpy.float64 ...). They are immutable, so calculations with them run during the capture and
// give constants.
#pragma once

#include "eval/state/interpreter.h"

namespace oxy::eval {

// The same scalar. If it is external, its value is guarded.
Ref known_scalar(Interpreter& interpreter, PyObject* scalar);
// If all operands are constants or NumPy scalars, at least one of these, gives what `run` gives. Otherwise
// nothing. Used for operators, functions and methods.
std::optional<Ref> with_scalars(Interpreter& interpreter, std::span<PyObject* const> operands,
                                const std::function<Ref()>& run);
// Gives what `run` gives. Stops if NumPy would warn: the program's settings (numpy.errstate) decide what
// happens then.
Ref run_quietly(const Interpreter& interpreter, const std::function<Ref()>& run);

}  // namespace oxy::eval
