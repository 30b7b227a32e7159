// The arguments of a call that is performed natively, while they lie on the caller's stack.
//
// The eval loop moves arguments into the callee's frame: when the callee rebinds a parameter, the argument
// dies. A call through C leaves the caller's references in place until it returns, which keeps tensors alive
// for longer. So the caller announces them, and gives them up when the callee's frame, which has references
// of its own, starts.
#pragma once

#include <Python.h>

#include <cstddef>

#include "cpy/frame.h"

namespace oxy::hook {

// Lives around one call. Given up slots are null afterwards. Does nothing unless `callable` is a Python
// function or a method of one.
class PassedArguments {
 public:
  PassedArguments(PyObject* callable, PyObject** first, size_t count);
  ~PassedArguments();
  PassedArguments(const PassedArguments&) = delete;
  PassedArguments& operator=(const PassedArguments&) = delete;
};

// To be told of every frame that starts on this thread: the one that follows the announcement is the callee's
// or none.
void give_up_arguments(cpy::Frame started);

}  // namespace oxy::hook
