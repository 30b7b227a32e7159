// Functions that common.cpp and the version files of this folder (python_311.cpp ...) provide to each other.
// Not for other folders.
#pragma once

#include <cstdint>

#include "cpy/internals.h"
#include "cpy/ref.h"

namespace oxy::cpy {

// Takes the asynchronous exception that waits for the thread; null if there is none.
Ref take_async_exception(PyThreadState* thread);

// Whether more than half of this thread's C stack is in use.
bool is_native_stack_deep();

// The index of `name` (an interned str) in the keys of a dict; -1 if it is none of them.
int64_t find_unicode_key(PyDictKeysObject* keys, PyObject* name);

// Gets a new slot for CodeExtra from CPython; -1 if none is left.
Py_ssize_t request_code_extra(freefunc free);

}  // namespace oxy::cpy
