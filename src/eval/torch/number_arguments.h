// Calls of torch whose number arguments are tensors of the graph, because the numbers vary, and calls on
// lists of tensors. They are expressed by methods of single tensors.
#pragma once

#include "eval/state/interpreter.h"

namespace oxy::eval {

// self.name(*arguments) where a factor that must be a number, such as `alpha` of add(), is a trace tensor.
// Nothing: there is no such argument.
std::optional<Ref> call_with_factor(Interpreter& interpreter, PyObject* self, std::string_view name,
                                    const Arguments& arguments);
// torch._foreach_<name>(*arguments): the method on each tensor of the lists.
Ref call_foreach(Interpreter& interpreter, std::string_view name, const Arguments& arguments);

}  // namespace oxy::eval
