// What the user said of the sizes of a tensor: oxyfuel.mark_dynamic and the like, and the marks of
// torch._dynamo, which are attributes of the same names on the tensor.
#pragma once

#include <Python.h>

#include <cstdint>

#include "sym/environment/symbol.h"

namespace oxy::eval {

// The mark of a dimension of a real tensor, which has `rank` dimensions. Marks may count from the end. A
// dynamic mark goes before a weak one, and that before a static one. Runs no code of the program's and leaves
// no exception set.
sym::Mark mark_of(PyObject* tensor, int64_t dimension, int64_t rank);
bool has_marks(PyObject* tensor);

}  // namespace oxy::eval
