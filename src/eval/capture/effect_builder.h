// What the program has done to objects that existed before the call, as effects of the capture.
#pragma once

#include "eval/capture/template_builder.h"
#include "eval/state/interpreter.h"

namespace oxy::eval {

// Appends to `interpreter.capture->effects`, in the order of the first look or write. Throws Break where a
// value cannot be made again.
void build_effects(Interpreter& interpreter, TemplateBuilder& templates);

}  // namespace oxy::eval
