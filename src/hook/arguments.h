// The arguments of a call that is performed natively, while they lie on the caller's stack.
//
// CPython's eval loop moves arguments into the callee's frame. So an argument dies when the callee rebinds
// its parameter. A call through C leaves the caller's references in place until it returns, which would keep
// tensors alive for longer. So the caller announces its arguments here. It gives them up when the callee's
// frame starts, which has references of its own.
#pragma once

#include <Python.h>

#include <cstddef>

#include "cpy/frame.h"

namespace oxy::hook {

// Lives around one call with the arguments first[0..count), which the stack owns. Slots that were given up
// are null afterwards. Does nothing unless `callable` is a Python function or a bound method of one.
class PassedArguments {
 public:
  PassedArguments(PyObject* callable, PyObject** first, size_t count);
  ~PassedArguments();
  PassedArguments(const PassedArguments&) = delete;
  PassedArguments& operator=(const PassedArguments&) = delete;
};

// To be called for every frame that starts on this thread. The first one after an announcement is the
// callee's, if it is of the announced function.
void give_up_arguments(cpy::Frame started);

}  // namespace oxy::hook
