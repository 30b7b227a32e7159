// State of a thread in CPython: tracing, requests to the eval loop, recursion and the C stack.
#pragma once

#include <Python.h>

#include <cstddef>

namespace oxy::cpy {

// Whether sys.settrace() or sys.setprofile() is active, or from 3.12 on a tool of sys.monitoring. Frames are
// left to CPython then.
bool is_traced(PyThreadState* thread);

// Whether a signal, a pending call, an asynchronous exception, a GIL request or a garbage collection waits
// for this thread.
bool has_requests(PyThreadState* thread);

// Runs signal handlers, and raises an asynchronous exception that another thread has set for this one. False
// with an error set if one of them raised.
bool serve_exceptions(PyThreadState* thread);

// Whether the interpreter is ending. Modules may be gone then.
bool is_finalizing();

// Serves the requests of has_requests() as the eval loop does at a backward jump. False with an error set if
// one of them raised.
bool serve_requests(PyThreadState* thread);

// Lets the eval loop run once, by a call of a Python function that does nothing. A new reference, or null
// with an error set.
PyObject* visit();

// Whether another level of Python calls, made through C, is within the interpreter's limits.
bool can_recurse(PyThreadState* thread);

// Whether more than half of this thread's C stack, or of CPython's allowance of nested C calls, is in use.
// Calls of Python functions should then be left to the eval loop, which nests them without using either.
bool is_c_stack_deep(PyThreadState* thread);

}  // namespace oxy::cpy
