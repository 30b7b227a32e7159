// What registering a hook while capturing gives.
#pragma once

#include <Python.h>

#include "cpy/ref.h"

namespace oxy::eval {

// Nothing may be done with it besides passing it on: it cannot take the hook back, and does not outlive the
// captured region.
cpy::Ref new_hook_handle();
bool is_hook_handle(PyObject* object);

}  // namespace oxy::eval
