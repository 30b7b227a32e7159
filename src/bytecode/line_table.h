// The line numbers of a code object.
#pragma once

#include <Python.h>

#include <cstdint>
#include <vector>

namespace oxy::bytecode {

// By code unit: its line in the source, beginning with 1; -1 if the compiler gave none.
std::vector<int32_t> line_of_unit(PyCodeObject* code);

}  // namespace oxy::bytecode
