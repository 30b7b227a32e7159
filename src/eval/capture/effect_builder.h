// Turns the shadows at the end of a capture into effects.
#pragma once

#include "eval/capture/template_builder.h"
#include "eval/state/interpreter.h"

namespace oxy::eval {

// Appends to `interpreter.capture->effects`, in the order in which the objects were first looked at or
// written. Stops at a value that cannot be made again.
void build_effects(Interpreter& interpreter, TemplateBuilder& templates);

}  // namespace oxy::eval
