// Special methods and properties of the program's classes that C code would run while capturing, unseen by
// the interpreter: their effects would come during the capture, and again at the call. They are kept from
// running, and the instruction ends the region. So is what PyTorch's Python code does for tensors without
// data.
#pragma once

#include <string>

#include "cpy/ref.h"

namespace oxy::eval {

// One per capture; all functions under the GIL, on the thread that captures. The current frame of the thread
// is the one that captures when it is made.
class CodeGate {
 public:
  CodeGate();

  // Whether `function` may run, called by C code with `first` as its first argument (may be null). False: an
  // error is set, which is no Exception. Finalizers, callbacks, imports and what they call may always run.
  bool admits(PyObject* function, PyObject* first);

  // While armed it refuses, and remembers. The interpreter arms it for the instructions that it evaluates.
  void arm(bool armed) { armed_ = armed; }
  const std::string& refused() const { return refused_; }  // the name; empty: nothing since clear()
  void clear() { refused_.clear(); }

  // While the program's own code runs as part of what is captured: what allow_in_graph() marks.
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
