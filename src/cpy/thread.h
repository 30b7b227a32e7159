// Per-thread interpreter state: tracing, requests to the eval loop, recursion and the C stack.
#pragma once

#include <Python.h>

#include <cstddef>

namespace oxy::cpy {

// True if sys.settrace, sys.setprofile or (3.12+) any tool uses sys.monitoring: frames then belong to
// CPython.
bool is_traced(PyThreadState* thread);

// True if a signal, a pending call, an asynchronous exception, a GIL request or a collection waits for this
// thread.
bool has_requests(PyThreadState* thread);

// Runs handlers of signals, and raises what another thread has asked this one to raise. False with an error
// set if there is an exception.
bool serve_exceptions(PyThreadState* thread);

// True once the interpreter is ending: modules may be gone.
bool is_finalizing();

// Serves those requests as the eval loop does at a back edge. False with an error set if one of them raised.
bool serve_requests(PyThreadState* thread);

// Calls a Python function that does nothing: the eval loop runs once. A new reference, or null with an error
// set.
PyObject* visit();

// Whether another level of Python calls, made through C, is within the interpreter's limits.
bool can_recurse(PyThreadState* thread);

// True when more than half of this thread's C stack, or of the interpreter's allowance of nested C calls, is
// in use: calls of Python functions should then be left to the eval loop, which nests them without using
// either.
bool is_c_stack_deep(PyThreadState* thread);

}  // namespace oxy::cpy
