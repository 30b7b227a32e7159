// Methods of external containers: those that change the container, or look something up by key.
#pragma once

#include "eval/state/interpreter.h"

namespace oxy::eval {

// self.name(*arguments). Nothing: the method does neither. The caller then calls it on the copy.
std::optional<Ref> call_container_method(Interpreter& interpreter, PyObject* self, std::string_view name,
                                         Arguments& arguments);
// Calls the method of the builtin class on a copy (materialize()).
Ref call_on_copy(Interpreter& interpreter, PyObject* copy, std::string_view name, Arguments arguments);

}  // namespace oxy::eval
