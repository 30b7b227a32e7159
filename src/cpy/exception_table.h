// A code object's exception table: which handler an error at an instruction goes to.
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

// In the order of the table: the first that covers a position is the one that CPython takes.
std::vector<Handler> exception_table(PyCodeObject* code);

// The handler of the instruction at `unit`; target -1 if it has none.
Handler find_handler(PyCodeObject* code, int32_t unit);

}  // namespace oxy::cpy
