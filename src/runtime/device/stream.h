// Streams of devices as Python objects (torch.Stream and classes derived from it).
#pragma once

#include <Python.h>

namespace oxy::runtime {

// Whether it is a torch.Stream, or of a class that PyTorch derives from it. Runs nothing of the object's.
bool is_stream(PyObject* object);

// Whether work that is given to the current device of the stream's kind now goes to this stream.
// Precondition: is_stream(object).
bool is_current_stream(PyObject* object);

// That question as a C function of Python's, is_current_stream(stream). Borrowed, lives for ever.
PyObject* current_stream_function();

}  // namespace oxy::runtime
