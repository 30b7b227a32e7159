// Functions of torch that take a size as a plain int, which has no room for a symbol: they are expressed by
// functions that take one.
#pragma once

#include <optional>

#include "eval/state/interpreter.h"

namespace oxy::eval {

// torch.linspace() of a symbolic number of steps or between floats that vary, and
// torch.nn.functional.one_hot() of a symbolic number of classes. Nothing: it is another call, or one that
// this cannot express.
std::optional<Ref> call_with_size(Interpreter& interpreter, PyObject* callable, const Arguments& arguments);

}  // namespace oxy::eval
