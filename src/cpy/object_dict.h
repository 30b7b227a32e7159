// The attributes kept in an instance, read without making its `__dict__`.
//
// From 3.11 on an object of an ordinary Python class keeps its attribute values in an array until somebody
// asks for
// `__dict__`; asking makes every later access slower, so guards must not ask.
#pragma once

#include <Python.h>

#include <cstdint>
#include <span>

namespace oxy::cpy {

// The dict that holds the object's attributes: null if it has none yet or can have none. Borrowed.
PyObject* existing_dict(PyObject* object);

// The object's `__dict__`, made if it can have one and has none yet; null without an error if it can have
// none. Borrowed from the object.
PyObject* materialized_dict(PyObject* object);

// The object's attribute values, while no dict was made for it. Which name a value belongs to is decided by
// `keys`: the same keys pointer and keys count mean the same names at the same places; an absent attribute's
// value is null. Changes when an attribute is added or removed, or a dict is made: `values` is empty then.
struct InlineValues {
  const void* keys = nullptr;         // shared by the instances of a class
  int64_t names = 0;                  // how many names the keys hold; they only grow
  std::span<PyObject* const> values;  // borrowed; at least `names` entries
  explicit operator bool() const { return keys != nullptr; }
};
InlineValues inline_values(PyObject* object);

// Where `name` (an interned str) lies in the values: -1 if it is none of the names.
int64_t inline_index(const InlineValues& values, PyObject* name);

// The value of the instance attribute `name` (an interned str), from either place; null without an error if
// the object has none. Does not look at the class. Borrowed.
PyObject* instance_value(PyObject* object, PyObject* name);

}  // namespace oxy::cpy
