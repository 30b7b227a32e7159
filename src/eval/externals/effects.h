// Writes to what existed before the call: kept aside until the segment has run.
#pragma once

#include "eval/state/interpreter.h"

namespace oxy::eval {

void record_attribute_effect(Interpreter& interpreter, PyObject* object, PyObject* name, PyObject* value);
// The overlay's value: nullopt if the attribute was not written; a null Ref if it was deleted.
std::optional<Ref> attribute_effect(Interpreter& interpreter, PyObject* object, PyObject* name);
void record_global_effect(Interpreter& interpreter, PyObject* globals, PyObject* name, PyObject* value);
void require_open_effects(Interpreter& interpreter);

}  // namespace oxy::eval
