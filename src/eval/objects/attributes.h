// Attributes: what is read.
#pragma once

#include "eval/state/interpreter.h"

namespace oxy::eval {

// What the special method gives, evaluated. Stops if that is not of the exact type, which CPython refuses
// or treats in ways of its own.
Ref call_special(Interpreter& interpreter, PyObject* object, const char* name, PyTypeObject* type);
Ref bind_descriptor(Interpreter& interpreter, PyObject* descriptor, PyObject* object, PyTypeObject* type);
// Whether what is found on a class (null: nothing) has code of its own for writes to the attribute;
// guarded, as its class can be given some later.
bool takes_writes(Interpreter& interpreter, PyObject* found);
// What a C descriptor reads of an existing class or function: something that the object holds.
Ref read_field(Interpreter& interpreter, PyObject* object, PyObject* descriptor);
// its type has a `__class__` of its own
bool overrides_class(Interpreter& interpreter, PyObject* object);
// What .grad of a tensor is; null if that cannot be said.
Ref gradient_of(Interpreter& interpreter, PyObject* tensor);
bool set_gradient(Interpreter& interpreter, PyObject* tensor, PyObject* value);
// of a tensor made before the call; stops if it has some
void require_no_gradient_hooks(Interpreter& interpreter, PyObject* tensor);
SourceId instance_dict_source(Interpreter& interpreter, PyObject* object);

}  // namespace oxy::eval
