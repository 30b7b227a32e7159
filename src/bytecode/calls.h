// Where the parts of a call lie on the value stack of the running Python version.
//
// Our interpreter keeps a frame's stack in CPython's order, so that CPython can take the frame over. Bottom
// first:
//
//   3.11, 3.12   NULL, callable, args...   or   function, self, args...   (PUSH_NULL before the callable)
//   3.13         callable, NULL, args...   or   function, self, args...   (PUSH_NULL behind the callable)
//
// So LoadMethod leaves (function, self), or else (NULL, value) up to 3.12 and (value, NULL) from 3.13 on.
// PushNull pushes NULL where it stands. Call takes these two entries and the arguments, keyword arguments
// last. If its arg2 is -2, the tuple of their names lies on top. CallFunctionEx takes callable and NULL in
// the same order, the tuple of positional arguments, and the dict of keyword arguments if its arg is 1.
//
// The functions are templates over the type of a stack entry: PyObject*, cpy::Ref, or another type that
// converts to bool and whose default value is the NULL entry.
#pragma once

#include <Python.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "bytecode/instruction.h"
#include "cpy/version.h"

namespace oxy::bytecode {

enum class CallLayout : uint8_t { NullBelow, NullAbove };
inline constexpr CallLayout kCallLayout = OXY_PYTHON >= 313 ? CallLayout::NullAbove : CallLayout::NullBelow;

// Positions in the stack, counted from its bottom.
struct CallOperands {
  size_t base = 0;  // the call consumes all entries from here up
  size_t callable = 0;
  bool has_self = false;  // `self` goes before the arguments; if false, `self` does not count
  size_t self = 0;
  size_t arguments = 0;  // the first of `count` arguments, keyword arguments last
  size_t count = 0;
  bool has_names_on_stack = false;  // if false, the names, if any, are constant number arg2 of the code
  size_t names = 0;
};

// Op::Call. `stack` is the whole value stack with the operands on top.
template <class Value>
CallOperands call_operands(std::span<const Value> stack, const Instruction& call) {
  CallOperands operands;
  size_t top = stack.size();
  if (call.arg2 == -2) {
    operands.has_names_on_stack = true;
    operands.names = --top;
  }
  operands.count = size_t(call.arg);
  operands.arguments = top - operands.count;
  operands.base = operands.arguments - 2;
  const size_t low = operands.base, high = low + 1;
  // Either way a filled pair is function, self; otherwise the one entry that is there is the callable.
  operands.has_self = bool(stack[low]) && bool(stack[high]);
  operands.callable = stack[low] ? low : high;
  operands.self = high;
  return operands;
}

// The same for Op::CallFunctionEx. `arguments`: the tuple; `keywords`: the dict, if there is one.
struct UnpackedCallOperands {
  size_t base = 0;
  size_t callable = 0;
  size_t arguments = 0;
  bool has_keywords = false;
  size_t keywords = 0;
};
inline UnpackedCallOperands unpacked_call_operands(size_t depth, const Instruction& call) {
  UnpackedCallOperands operands;
  operands.has_keywords = call.arg & 1;
  operands.keywords = depth - 1;
  operands.arguments = depth - 1 - size_t(operands.has_keywords);
  operands.base = operands.arguments - 2;
  operands.callable = operands.base + (kCallLayout == CallLayout::NullBelow ? 1 : 0);
  return operands;
}

// Pushes a callable, with the NULL that tells that it has no self. For LoadGlobal with arg2 = 1 and
// LoadMethod of a plain attribute.
template <class Value>
void push_callable(std::vector<Value>& stack, Value callable) {
  if constexpr (kCallLayout == CallLayout::NullBelow) {
    stack.push_back(Value{});
    stack.push_back(std::move(callable));
  } else {
    stack.push_back(std::move(callable));
    stack.push_back(Value{});
  }
}

// Pushes an unbound method and the object on which it was found. For LoadMethod.
template <class Value>
void push_method(std::vector<Value>& stack, Value function, Value self) {
  stack.push_back(std::move(function));
  stack.push_back(std::move(self));
}

}  // namespace oxy::bytecode
