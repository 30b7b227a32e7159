// Unary operators, and texts of objects: str(), repr(), format(). evaluation.h declares binary().
#pragma once

#include "eval/state/interpreter.h"

namespace oxy::eval {

// `op`: UnaryNegative, UnaryInvert or UnaryPositive.
Ref unary(Interpreter& interpreter, bytecode::Op op, PyObject* operand);
// If the object is a tensor: guards that its class keeps its special method `method`.
void guard_tensor_special(Interpreter& interpreter, PyObject* object, const char* method);
// `conversion` of this and the next: 0 none, 1 str, 2 repr, 3 ascii.
Ref convert(Interpreter& interpreter, PyObject* value, int conversion);
// format(value, spec) after the conversion. `spec`: a str, or null for the empty one.
Ref format(Interpreter& interpreter, PyObject* value, int conversion, PyObject* spec);
// repr(value), or if not `repr` str(value).
Ref to_text(Interpreter& interpreter, PyObject* value, bool repr);

}  // namespace oxy::eval
