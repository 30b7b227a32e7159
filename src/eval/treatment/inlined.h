// Which Python functions are inlined, and which functions torch has wrapped for torch.compile.
#pragma once

#include <Python.h>

namespace oxy::eval {

// The reason why calls of a Python function are a break, a text that lives for ever; null if it is inlined.
const char* refusal_to_inline(PyObject* function);
// The function behind a wrapper of torch's: one that keeps torch.compile out of the function for reasons that
// do not concern us, or one that torch.compile has put in its place. Null, without an error, for others.
PyObject* behind_torch_compile(PyObject* function);

}  // namespace oxy::eval
