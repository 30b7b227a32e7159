// The exception table of a code object: the handler for an error at each instruction.
#pragma once

#include <Python.h>

#include <cstdint>
#include <vector>

namespace oxy::cpy {

struct Handler {
  int32_t begin = 0, end = 0;  // code units covered: [begin, end)
  int32_t target = -1;         // where the handler starts, in code units
  int32_t depth = 0;           // stack depth to unwind to
  bool push_last_instruction =
      false;  // the position of the failing instruction is pushed before the exception
};

// All handlers in the order of the table. CPython takes the first one that covers a position.
std::vector<Handler> exception_table(PyCodeObject* code);

// The handler for the instruction at code unit `unit`; its target is -1 if there is none.
Handler find_handler(PyCodeObject* code, int32_t unit);

}  // namespace oxy::cpy
