// Attributes of classes.
#pragma once

#include "eval/state/interpreter.h"

namespace oxy::eval {

// Attribute of a class: looked up in its metaclass and along its method resolution order.
Ref class_attribute(Interpreter& interpreter, PyObject* object, PyObject* name);
// Attribute of list[int] or int | str, which pass most names on to their class.
Ref alias_attribute(Interpreter& interpreter, PyObject* object, PyObject* name);

}  // namespace oxy::eval
