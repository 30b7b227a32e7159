// Exceptions that signal handlers raise. They come out of whatever code runs when Python notices the signal.
#pragma once

#include <Python.h>

namespace oxy::cpy {

// Whether an exception of the type, null for none, is a KeyboardInterrupt, or was raised by a function that
// is the handler of some signal or that the handler called. `traceback` may be null. Leaves the pending error
// as it is, if there is one.
bool is_interruption(PyObject* type, PyObject* traceback);

// Runs the handlers of signals that have come. True: one has raised, and the error is set. False on threads
// that run no handlers. Takes the GIL (oxy::InterruptionCheck).
bool run_signal_handlers();

}  // namespace oxy::cpy
