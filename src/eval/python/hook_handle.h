// The handle that tensor.register_hook() gives in a captured region.
#pragma once

#include <Python.h>

#include "cpy/ref.h"

namespace oxy::eval {

// A new handle. It can only be passed on: it cannot remove the hook, and it may not outlive the region.
cpy::Ref new_hook_handle();
bool is_hook_handle(PyObject* object);

}  // namespace oxy::eval
