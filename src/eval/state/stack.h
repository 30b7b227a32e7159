// Operations on a frame's value stack. It has the layout of the running CPython's own stack
// (bytecode/calls.h), so that a frame can be handed over at any instruction.
#pragma once

#include <Python.h>

#include "eval/state/interpreter.h"

namespace oxy::eval {

// 3.13: [callable, self or NULL, args...]; before: [NULL, callable, args...] or [method, self, args...].
inline constexpr bool kCallableFirst = PY_VERSION_HEX >= 0x030D0000;

// Precondition: the stack is not empty.
inline Ref pop(Frame& frame) {
  Ref top = std::move(frame.stack.back());
  frame.stack.pop_back();
  return top;
}

// Pushes a callable with no self beside it.
inline void push_callable(Frame& frame, Ref callable) {
  if constexpr (kCallableFirst) {
    frame.stack.push_back(std::move(callable));
    frame.stack.emplace_back();
  } else {
    frame.stack.emplace_back();
    frame.stack.push_back(std::move(callable));
  }
}

// Pushes an unbound method and the object that it is called on.
inline void push_method(Frame& frame, Ref method, Ref self) {
  frame.stack.push_back(std::move(method));
  frame.stack.push_back(std::move(self));
}

// Entry `index` of the code's co_names, borrowed.
inline PyObject* name_at(Frame& frame, int32_t index) {
  return PyTuple_GET_ITEM(frame.pycode()->co_names, index);
}

}  // namespace oxy::eval
