// Calls of torch whose number arguments are tensors of the graph, because the numbers vary, and calls on
// lists of tensors. They are expressed by methods of single tensors.
#pragma once

#include "eval/state/interpreter.h"

namespace oxy::eval {

// callable(*arguments) with a number that varies among the arguments, by the form that the function or method
// has on tensors (treatment/number_forms.h). `method`: its name; empty for a function. Nothing: it is another
// call.
std::optional<Ref> call_number_form(Interpreter& interpreter, PyObject* callable, std::string_view method,
                                    const Arguments& arguments);
// self.name(*arguments) where a factor that must be a number, such as `alpha` of add(), is a trace tensor.
// Nothing: there is no such argument.
std::optional<Ref> call_with_factor(Interpreter& interpreter, PyObject* self, std::string_view name,
                                    const Arguments& arguments);
// torch._foreach_<name>(*arguments): the method on each tensor of the lists.
Ref call_foreach(Interpreter& interpreter, std::string_view name, const Arguments& arguments);
// torch._fused_adam_(*arguments) and its like, which optimizers with fused=True call: parameter by parameter,
// by the forms of treatment/optimizer_forms.h. Nothing: it is another function.
std::optional<Ref> call_fused_optimizer(Interpreter& interpreter, PyObject* callable,
                                        const Arguments& arguments);

}  // namespace oxy::eval
