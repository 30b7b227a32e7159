// Sources: how a value that capture read is reached again from the call's roots, by C reads alone.
//
// Every kind of read is a plain field or dict access that runs no Python code, or arithmetic on exact ints
// and floats, so that guards may be checked at any moment without side effects.
#pragma once

#include <Python.h>

#include <cstdint>
#include <string>

#include "base/id.h"
#include "cpy/ref.h"

namespace oxy::guards {

struct Source;
using SourceId = Id<Source>;
inline constexpr SourceId kNoSource;

enum class SourceKind : uint8_t {
  Root,              // root number `index` of the call (an argument, a local, a stack slot); label in `key`
  Pinned,            // the object `key` itself: held by the guards, reached without a read
  InstanceDict,      // the __dict__ of the base
  DictItem,          // base[key], base a dict
  ListItem,          // base[index], base a list
  TupleItem,         // base[index], base a tuple (or a subclass of it)
  CellContents,      // what the cell holds
  FunctionCode,      // base.__code__
  FunctionDefaults,  // base.__defaults__
  FunctionKwDefaults,
  FunctionGlobals,  // base.__globals__
  FunctionClosure,  // base.__closure__
  MethodFunction,   // base.__func__
  MethodSelf,       // base.__self__
  Member,           // the C member (slot) that the member descriptor `key` names
  ContextVariable,  // the value of the context variable
  WeakReferent,     // what the weak reference refers to; None if that is gone
  DequeItem,        // base[index], base a deque
  SetMember,        // the `key` itself if the set has it
  Calculated,  // what the pure C function `key` gives for the number base and, if there is one, the other;
               // or, without a base, for no arguments
};

struct Source {
  SourceKind kind = SourceKind::Root;
  SourceId base;
  int32_t index = -1;
  cpy::Ref key;
  SourceId other;  // of what is calculated
};

// Exactly a deque, not an object of a subclass.
bool is_deque(PyObject* object);

// The length of a list, tuple, dict, set or deque, also of a subclass's object (not of a deque's); -1 of any
// other. Runs no code of the class.
Py_ssize_t length_of(PyObject* value);

// What a calculated source is now: null if its operands are not numbers or the function raises. Leaves no
// exception set.
cpy::Ref calculate(const Source& source, PyObject* base, PyObject* other);

// The value of another source now (borrowed, kept alive by the base), or null if there is none. Never runs
// Python code and leaves no exception set.
PyObject* read(const Source& source, PyObject* base);

}  // namespace oxy::guards
