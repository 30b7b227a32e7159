// Items, iterators, truth and length of any object.
#pragma once

#include "eval/state/interpreter.h"

namespace oxy::eval {

// null: None
Ref make_slice(Interpreter& interpreter, PyObject* start, PyObject* stop, PyObject* step);
bool truth(Interpreter& interpreter, PyObject* object, bool* error);
bool delete_item(Interpreter& interpreter, PyObject* object, PyObject* key);
// -1: error set
int contains(Interpreter& interpreter, PyObject* container, PyObject* item);
Ref get_iterator(Interpreter& interpreter, PyObject* object);
// what the object's `__len__` gives, evaluated
Ref length_of(Interpreter& interpreter, PyObject* object);
// What CPython asks of what it makes a list or tuple of. False: exception set.
bool ask_length_hint(Interpreter& interpreter, PyObject* iterable);
bool assign_slice(Interpreter& interpreter, PyObject* list, PyObject* slice, PyObject* iterable);

}  // namespace oxy::eval
