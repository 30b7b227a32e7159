// Methods of containers that existed before the call: what changes them, or looks at them by key.
#pragma once

#include "eval/state/interpreter.h"

namespace oxy::eval {

// Nothing: the method does neither.
std::optional<Ref> call_container_method(Interpreter& interpreter, PyObject* self, std::string_view name,
                                         Arguments& arguments);
Ref call_on_copy(Interpreter& interpreter, PyObject* copy, std::string_view name, Arguments arguments);

}  // namespace oxy::eval
