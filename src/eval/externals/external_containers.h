// External lists, deques, tuples, dicts and sets, also of subclasses: reads with guards and writes to
// shadows. Each function sees the container as the program has left it so far.
#pragma once

#include "eval/state/interpreter.h"

namespace oxy::eval {

// The copy that stands for an external container, with all items admitted; its length, keys or order become
// guards. Only functions that write to the container may change the copy. Any other object is given back
// unchanged.
Ref materialize(Interpreter& interpreter, PyObject* object);
// Stops if an external list, tuple or dict and the containers in it have too many items for each to be
// guarded.
void need_few_items_within(Interpreter& interpreter, PyObject* container);
// The number of items of an external container. Guards the length, unless everything was written.
Py_ssize_t size_of(Interpreter& interpreter, PyObject* object);
// Whether an external dict or set has the key: 1, 0, or -1 with an exception set. Guards the answer alone.
int has_key(Interpreter& interpreter, PyObject* container, PyObject* key);
// The value of an external dict. Null without an exception: there is no such key.
Ref read_entry(Interpreter& interpreter, PyObject* dict, PyObject* key);
// The same with what dict[key] does for a missing key: __missing__(), a default factory, or KeyError.
Ref read_entry_or_make(Interpreter& interpreter, PyObject* dict, PyObject* key);
// Writes an entry of an external dict or set. Null: removes the entry if there is one. For a set, any value
// adds the key.
bool write_entry(Interpreter& interpreter, PyObject* container, PyObject* key, PyObject* value);
// The shadow of an external list or deque, made whole: its copy has as many items as the object. Items that
// were not read are placeholders, which are not guarded.
Shadow& known_length(Interpreter& interpreter, PyObject* object);
// The shadow of an external dict, made whole: all keys and values are admitted.
Shadow& whole_dict(Interpreter& interpreter, PyObject* object);
// The key in the form in which C code may hash it (hashing.h). Stops if it has code of its own for that.
Ref own_key(Interpreter& interpreter, PyObject* key);
// For an item of a copy: the real item if it was read already, else the placeholder itself.
Ref known_item(Interpreter& interpreter, PyObject* item);
// For an item of a copy: the real item, which is admitted if the item is a placeholder.
Ref read_item(Interpreter& interpreter, PyObject* item);
// Appends `items` (a list of the interpreter's) to an external list or deque, whose length stays unknown.
bool append_items(Interpreter& interpreter, PyObject* object, PyObject* items);
// Removes all items of an external list, deque, dict or set.
void empty(Interpreter& interpreter, PyObject* object);

}  // namespace oxy::eval
