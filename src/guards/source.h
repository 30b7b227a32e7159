// Sources: how a value that a capture has read is reached again from the roots of a later call.
//
// Every kind of read is a plain field or dict access, or arithmetic on exact ints and floats. None runs
// Python code, so that guards can be checked at any moment without side effects.
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
  ContextVariable,  // the value of the contextvars.ContextVar
  WeakReferent,     // the referent of the weak reference; None if it has died
  DequeItem,        // base[index], base a deque
  SetMember,        // the `key` itself if the set has it
  TensorSize,       // the size of dimension `index` of the tensor, as an int
  TensorStride,     // likewise, in elements
  TensorOffset,     // of the tensor in its storage, in elements
  TensorElement,    // element `index` of the tensor in row-major order, as an int (IntegerPart::Element)
  Calculated,  // the result of the pure C function `key` for the numbers or streams `base` and `other`, as
               // far as there are such
};

struct Source {
  SourceKind kind = SourceKind::Root;
  SourceId base;
  int32_t index = -1;
  cpy::Ref key;
  SourceId other;  // of what is calculated
};

// Whether the object is exactly a collections.deque, not of a subclass.
bool is_deque(PyObject* object);

// The length of a list, tuple, dict or set, also of a subclass, or of an exact deque; -1 for any other
// object. Runs no code of the class.
Py_ssize_t length_of(PyObject* value);

// Whether the value is a number that each read makes anew.
bool is_made(SourceKind kind);

// The present value of such a source. `base` and `other`: its operands or null. Null if an operand is not
// what it must be, or the function raises. Leaves no exception set.
cpy::Ref make_number(const Source& source, PyObject* base, PyObject* other);

// The present value of a source of any other kind, read from the value of its base. Borrowed: the base keeps
// it alive. Null if there is none. Runs no Python code and leaves no exception set.
PyObject* read(const Source& source, PyObject* base);

// Where read() finds it: memory of the base that holds the pointer for as long as the base lives. Null if
// read() does more than to follow a pointer.
PyObject* const* place_of(const Source& source, PyObject* base);

}  // namespace oxy::guards
