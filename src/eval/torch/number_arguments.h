// Calls of torch that are given varying numbers.
#pragma once

#include "eval/state/interpreter.h"

namespace oxy::eval {

// `self.name(*arguments)` with a tensor as the factor that is to be a number. Nothing: it has none.
std::optional<Ref> call_with_factor(Interpreter& interpreter, PyObject* self, std::string_view name,
                                    const Arguments& arguments);
Ref call_foreach(Interpreter& interpreter, std::string_view name, const Arguments& arguments);

}  // namespace oxy::eval
