// The frame loop: runs one frame segment by segment, and performs the instructions between segments natively.
#pragma once

#include <Python.h>

#include "cpy/frame.h"
#include "hook/segment.h"

namespace oxy::hook {

// Runs a frame to its end. The frame is at its start, or it is a generator's that was resumed, which ends
// where it yields. The frame is consumed: CPython ends it in any case, at a RETURN_VALUE or YIELD_VALUE, by
// an error, or after it has run the rest of the code. Returns a new reference, or null with a Python error
// set. The GIL is held.
PyObject* run_frame(PyThreadState* thread, cpy::Frame frame, SegmentRunner& runner);

}  // namespace oxy::hook
