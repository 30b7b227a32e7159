// Integers of objects that a symbol may stand for.
#pragma once

#include <Python.h>

#include <cstdint>
#include <optional>

namespace oxy::guards {

// What is read of an object.
enum class IntegerPart : uint8_t {
  Value,    // the object itself, an int
  Size,     // of a dimension of a tensor
  Stride,   // likewise, in elements
  Offset,   // of a tensor in its storage, in elements
  Element,  // of a tensor of integers in host memory, by its place in row-major order
};

// The integer. `dimension`: the place of an element. Nothing if the object (borrowed, may be null) has none
// such: it is no int of 64 bits, or no tensor with that dimension or element. Runs no Python code. Needs the
// GIL.
std::optional<int64_t> read_integer(IntegerPart part, int32_t dimension, PyObject* object);

}  // namespace oxy::guards
