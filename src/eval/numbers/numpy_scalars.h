// Numbers of numpy's, which are constants.
#pragma once

#include "eval/state/interpreter.h"

namespace oxy::eval {

// A number of numpy's that is looked at: guarded if it was made before.
Ref known_scalar(Interpreter& interpreter, PyObject* scalar);
// Operators, functions and methods on constants and numbers of numpy's are run. Nothing: other operands.
std::optional<Ref> with_scalars(Interpreter& interpreter, std::span<PyObject* const> operands,
                                const std::function<Ref()>& run);
// Runs what may compute with them. Stops at what numpy would warn of.
Ref run_quietly(const Interpreter& interpreter, const std::function<Ref()>& run);

}  // namespace oxy::eval
