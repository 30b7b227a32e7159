// Operators and texts.
#pragma once

#include "eval/state/interpreter.h"

namespace oxy::eval {

Ref unary(Interpreter& interpreter, bytecode::Op op, PyObject* operand);
// The special method of a tensor stays that which its class has now.
void guard_tensor_special(Interpreter& interpreter, PyObject* object, const char* method);
// conversion: 0 none, 1 str, 2 repr, 3 ascii.
Ref convert(Interpreter& interpreter, PyObject* value, int conversion);
Ref format(Interpreter& interpreter, PyObject* value, int conversion, PyObject* spec);
Ref to_text(Interpreter& interpreter, PyObject* value, bool repr);

}  // namespace oxy::eval
