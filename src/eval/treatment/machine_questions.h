// PyTorch's functions that ask what machine the process runs on.
#pragma once

#include <Python.h>

namespace oxy::eval {

// Whether the answer stays the same while the process runs, or depends on nothing but the arguments and the
// current device, which every capture guards. It is a number, a text, a device or a tuple of such.
bool is_machine_question(PyObject* callable);

}  // namespace oxy::eval
