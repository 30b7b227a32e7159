// Reads of attributes, and what belongs to them: descriptors, fields of C types, gradients of tensors.
#pragma once

#include "eval/state/interpreter.h"

namespace oxy::eval {

// object.name() for a special method in Python. Stops if the result is not exactly of `type`: CPython has
// rules of its own for that.
Ref call_special(Interpreter& interpreter, PyObject* object, const char* name, PyTypeObject* type);
// descriptor.__get__(object, type): what `descriptor`, found in the class, gives for an instance. Null
// `object`: for the class itself.
Ref bind_descriptor(Interpreter& interpreter, PyObject* descriptor, PyObject* object, PyTypeObject* type);
// Whether `found`, the attribute in an object's class (null: none), is a data descriptor with code for
// writes. Guarded, as its class can get such code later.
bool takes_writes(Interpreter& interpreter, PyObject* found);
// Reads a field of an external class or function through its C descriptor (`__defaults__`, `__name__` ...).
Ref read_field(Interpreter& interpreter, PyObject* object, PyObject* descriptor);
// Whether the object's type has a `__class__` of its own.
bool overrides_class(Interpreter& interpreter, PyObject* object);
// tensor.grad of a trace tensor. Null, without an exception, if it is not known.
Ref gradient_of(Interpreter& interpreter, PyObject* tensor);
// tensor.grad = value, which is an effect if the tensor is external. Stops if the value is no tensor that
// fits.
bool set_gradient(Interpreter& interpreter, PyObject* tensor, PyObject* value);
// Guards that an external tensor has no hooks that see its gradient. Stops if it has some.
void require_no_gradient_hooks(Interpreter& interpreter, PyObject* tensor);
// The source of an external object's `__dict__`.
SourceId instance_dict_source(Interpreter& interpreter, PyObject* object);

}  // namespace oxy::eval
