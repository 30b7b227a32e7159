// Writes to attributes, cells and globals of external objects. They go to shadows and are performed after the
// run.
#pragma once

#include "eval/state/interpreter.h"

namespace oxy::eval {

// object.name = value, or with a null value its deletion. A cell has the name kCellContents.
void record_attribute_effect(Interpreter& interpreter, PyObject* object, PyObject* name, PyObject* value);
// The value that was written to the attribute. Nothing: it was not written; null, without an exception: it
// was deleted.
std::optional<Ref> attribute_effect(Interpreter& interpreter, PyObject* object, PyObject* name);
// Writes a global variable, or deletes it. `globals` is the real dict.
void record_global_effect(Interpreter& interpreter, PyObject* globals, PyObject* name, PyObject* value);
// Stops where writes to external objects are not allowed (Shadows::closed_by). To be called before each
// write.
void require_open_effects(Interpreter& interpreter);

}  // namespace oxy::eval
