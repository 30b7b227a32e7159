// The code gate keeps C code from running the program's special methods and properties during a capture. The
// interpreter would not see them, and their effects would come twice: at the capture and at the call. The
// gate refuses to run such a method, and the instruction ends the region. It also refuses the Python code
// that PyTorch has for tensors without data, as it would treat a trace tensor as one.
#pragma once

#include <string>

#include "cpy/ref.h"

namespace oxy::eval {

// One per capture, on the thread that captures. It has to be made while the capturing frame is the thread's
// current one.
class CodeGate {
 public:
  CodeGate();

  // Whether `function`, which C code calls with `first` as its first argument (may be null), may run. False:
  // a Python error is set that is not derived from Exception. Finalizers, callbacks and imports, and what
  // they call, may always run.
  bool admits(PyObject* function, PyObject* first);

  // Only an armed gate refuses. It is armed while the interpreter executes instructions.
  void arm(bool armed) { armed_ = armed; }
  // The name of the function that was refused; empty: none since clear().
  const std::string& refused() const { return refused_; }
  void clear() { refused_.clear(); }

  // On while a function that is marked by allow_in_graph() runs: its code is part of the capture.
  void include_own_code(bool included) { includes_own_code_ = included; }
  bool includes_own_code() const { return includes_own_code_; }

 private:
  bool is_called_by_library() const;

  cpy::Ref base_;
  bool armed_ = false;
  bool includes_own_code_ = false;
  std::string refused_;
};

}  // namespace oxy::eval
