// Items, slices, iterators, truth and length of any object. evaluation.h declares get_item(), set_item() and
// iterate().
#pragma once

#include "eval/state/interpreter.h"

namespace oxy::eval {

// slice(start, stop, step). A null part is None.
Ref make_slice(Interpreter& interpreter, PyObject* start, PyObject* stop, PyObject* step);
// bool(object). `*error`: an exception is set.
bool truth(Interpreter& interpreter, PyObject* object, bool* error);
bool delete_item(Interpreter& interpreter, PyObject* object, PyObject* key);
// `item in container`: 1, 0, or -1 with an exception set.
int contains(Interpreter& interpreter, PyObject* container, PyObject* item);
// iter(object).
Ref get_iterator(Interpreter& interpreter, PyObject* object);
// len(object) as an int object, where the object's class has a `__len__` in Python.
Ref length_of(Interpreter& interpreter, PyObject* object);
// Calls `__len__` or `__length_hint__` as CPython does before it makes a list or tuple of an iterable.
bool ask_length_hint(Interpreter& interpreter, PyObject* iterable);
// list[slice] = iterable.
bool assign_slice(Interpreter& interpreter, PyObject* list, PyObject* slice, PyObject* iterable);

}  // namespace oxy::eval
