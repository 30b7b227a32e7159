// The attributes of an instance, read without making its `__dict__`.
//
// From 3.11 on, an object of an ordinary Python class keeps its attribute values in an array until somebody
// asks for its `__dict__`. Asking makes every later access slower, so guards must not ask.
#pragma once

#include <Python.h>

#include <cstdint>
#include <span>

namespace oxy::cpy {

// Where the object points to the dict that holds its attributes: the same place for as long as the object
// lives and has this dict. Null if it has none yet or cannot have one.
PyObject* const* dict_place(PyObject* object);

// That dict, borrowed; null if it has none yet or cannot have one.
PyObject* existing_dict(PyObject* object);

// The object's `__dict__`, which is made if needed; null without an error if it cannot have one. Borrowed
// from the object.
PyObject* materialized_dict(PyObject* object);

// Where the object holds what the descriptor reads: of a slot, or of an attribute of functions and classes
// such as `__code__`. It is the same place for as long as the object lives. Null for other descriptors, and
// if the descriptor belongs to another type. An attribute that is None may be a null pointer there.
PyObject* const* member_place(PyObject* descriptor, PyObject* object);

// The attribute values of an object for which no dict was made. The same `keys` and `names` mean the same
// names at the same places. The value of an absent attribute is null. Adding or removing an attribute changes
// it. Once a dict is made, it is empty.
struct InlineValues {
  const void* keys = nullptr;         // shared by the instances of a class
  int64_t names = 0;                  // how many names the keys hold; they only grow
  std::span<PyObject* const> values;  // borrowed; at least `names` entries
  explicit operator bool() const { return keys != nullptr; }
};
InlineValues inline_values(PyObject* object);

// The index of `name` (an interned str) in `values`; -1 if it is none of the names.
int64_t inline_index(const InlineValues& values, PyObject* name);

// The value of the instance attribute `name` (an interned str), borrowed, from the array or the dict; null
// without an error if the object has none. Does not look at the class.
PyObject* instance_value(PyObject* object, PyObject* name);

}  // namespace oxy::cpy
