// Objects that existed before the call: admitted once, guarded by what is read of them.
#pragma once

#include "eval/state/interpreter.h"

namespace oxy::eval {

Ref admit(Interpreter& interpreter, PyObject* raw, SourceId source);
// the location holds something, whatever it is
void admit_presence(Interpreter& interpreter, SourceId source);
// admits an object reached by identity alone
Ref pin(Interpreter& interpreter, PyObject* raw);

}  // namespace oxy::eval
