// Line numbers of a code object.
#pragma once

#include <Python.h>

#include <cstdint>
#include <vector>

namespace oxy::bytecode {

// The line of every code unit; -1 where the compiler gave none.
std::vector<int32_t> line_of_unit(PyCodeObject* code);

}  // namespace oxy::bytecode
