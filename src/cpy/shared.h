// What the version files of this folder provide to its common part. Not for other folders.
#pragma once

#include <cstdint>

#include "cpy/internals.h"
#include "cpy/ref.h"

namespace oxy::cpy {

// Takes the asynchronous exception that waits for the thread, if any.
Ref take_async_exception(PyThreadState* thread);

bool is_native_stack_deep();

int64_t find_unicode_key(PyDictKeysObject* keys, PyObject* name);

Py_ssize_t request_code_extra(freefunc free);

}  // namespace oxy::cpy
