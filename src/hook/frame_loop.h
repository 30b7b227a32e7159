// One frame, run segment by segment.
#pragma once

#include <Python.h>

#include "cpy/frame.h"
#include "hook/segment.h"

namespace oxy::hook {

// Runs a frame to its end: one that is at its start, or that of a generator from where it is resumed to where
// it yields. Consumes the frame, as the interpreter's own evaluation does: it is always CPython that ends it,
// at a RETURN_VALUE or YIELD_VALUE, by an error, or after running whatever we do not. Returns a new
// reference, or null with an error set.
PyObject* run_frame(PyThreadState* thread, cpy::Frame frame, SegmentRunner& runner);

}  // namespace oxy::hook
