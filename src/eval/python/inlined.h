// Which Python functions are evaluated, and what stands behind those that torch has wrapped.
#pragma once

#include <Python.h>

namespace oxy::eval {

// Why a Python function is not evaluated but called as it is; nullptr if it is inlined.
const char* refusal_to_inline(PyObject* function);
// What torch has wrapped to keep torch.compile out of it, where that was for that compiler's sake, and what
// torch.compile itself has replaced: borrowed; null for other functions.
PyObject* behind_torch_compile(PyObject* function);

}  // namespace oxy::eval
