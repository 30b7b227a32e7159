// Lists, deques, tuples, dicts and sets that existed before the call.
#pragma once

#include "eval/state/interpreter.h"

namespace oxy::eval {

// The copy, items admitted, of an external list, deque, tuple, dict or set that stands for it (guards its
// length or keys): not to be written except by what writes to the container. Anything else unchanged.
Ref materialize(Interpreter& interpreter, PyObject* object);
// of an external list, deque, tuple, dict or set
Py_ssize_t size_of(Interpreter& interpreter, PyObject* object);
// an external dict or set; -1: an error is set
int has_key(Interpreter& interpreter, PyObject* container, PyObject* key);
// an external dict; null without an error: no such key
Ref read_entry(Interpreter& interpreter, PyObject* dict, PyObject* key);
// null: an error is set, KeyError if there is none
Ref read_entry_or_make(Interpreter& interpreter, PyObject* dict, PyObject* key);
// Value null: the entry, if there is one, is removed. Of a set the value says that the key is a member.
bool write_entry(Interpreter& interpreter, PyObject* container, PyObject* key, PyObject* value);
Shadow& known_length(Interpreter& interpreter, PyObject* object);
Shadow& whole_dict(Interpreter& interpreter, PyObject* object);
Ref own_key(Interpreter& interpreter, PyObject* key);
Ref known_item(Interpreter& interpreter, PyObject* item);
Ref read_item(Interpreter& interpreter, PyObject* item);
bool append_items(Interpreter& interpreter, PyObject* object, PyObject* items);
void empty(Interpreter& interpreter, PyObject* object);

}  // namespace oxy::eval
