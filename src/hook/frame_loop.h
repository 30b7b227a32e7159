// One frame, run segment by segment.
#pragma once

#include <Python.h>

#include "cpy/frame.h"
#include "hook/segment.h"

namespace oxy::hook {

// Runs a frame that is at its start to its end. Consumes the frame, as the interpreter's own evaluation does:
// it is always CPython that ends it, at a RETURN_VALUE, by an error, or after running whatever we do not.
// Returns a new reference, or null with an error set.
PyObject* run_frame(PyThreadState* thread, cpy::Frame frame, SegmentRunner& runner);

}  // namespace oxy::hook
