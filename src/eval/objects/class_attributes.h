// Attributes of classes.
#pragma once

#include "eval/state/interpreter.h"

namespace oxy::eval {

Ref class_attribute(Interpreter& interpreter, PyObject* object, PyObject* name);
// of list[int] or int | str
Ref alias_attribute(Interpreter& interpreter, PyObject* object, PyObject* name);

}  // namespace oxy::eval
