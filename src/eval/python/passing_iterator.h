// An iterator that passes on the items of another one. A C iterator, such as a zip, is made again after a run
// and would call `__iter__` of its arguments then. Passing iterators take their place, so that an `__iter__`
// of the program's is not called a second time.
#pragma once

#include "cpy/ref.h"

namespace oxy::eval {

cpy::Ref new_passing_iterator(PyObject* iterator);
bool is_passing_iterator(PyObject* object);  // its __reduce__ gives how to make it

}  // namespace oxy::eval
