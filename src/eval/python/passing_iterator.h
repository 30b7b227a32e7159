// An iterator that gives what another gives. Iterators of C's are made of one where the program's own class
// has an `__iter__`, which they would call again when they are made after the region.
#pragma once

#include "cpy/ref.h"

namespace oxy::eval {

cpy::Ref new_passing_iterator(PyObject* iterator);
bool is_passing_iterator(PyObject* object);  // its __reduce__ gives how to make it

}  // namespace oxy::eval
