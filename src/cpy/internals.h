// CPython's private headers, for the sources of this folder alone.
#pragma once

#ifndef Py_BUILD_CORE
#define Py_BUILD_CORE 1
#endif
#include <Python.h>
// <stdatomic.h> does not serve C++20: the builtin atomics have the same layout.
#undef HAVE_STD_ATOMIC
#include <internal/pycore_code.h>
#include <internal/pycore_dict.h>
#include <internal/pycore_frame.h>
#include <internal/pycore_interp.h>
#include <internal/pycore_object.h>
#include <internal/pycore_pystate.h>

#include "cpy/version.h"
