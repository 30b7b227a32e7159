// What the user said of the sizes of a tensor by oxyfuel.mark_dynamic and the like, or by the marks of
// torch._dynamo, which are attributes of the same names on the tensor.
#pragma once

#include <Python.h>

#include <cstdint>

#include "eval/sizes/dimension.h"

namespace oxy::eval {

// The mark of a dimension of a real tensor, which has `rank` dimensions. Marks may count from the end. One
// that says more goes before others: unbacked, dynamic, maybe dynamic, static. Sizes with the same shape id
// are equal. Runs no code of the program's and leaves no exception set.
Dimension mark_of(PyObject* tensor, int64_t dimension, int64_t rank);
bool has_marks(PyObject* tensor);

}  // namespace oxy::eval
