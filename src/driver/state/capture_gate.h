// Keeps C code from running the program's special methods while a region is captured
// (eval/python/code_gate.h).
#pragma once

#include "eval/python/code_gate.h"
#include "hook/hook.h"

namespace oxy::driver {

// For the capture's options; in place while it lives.
class CaptureGate final : public hook::FrameGate {
 public:
  bool admits(cpy::Frame frame) override;
  // Code of the program's own that runs all the same: finalizers, callbacks, signal handlers.
  bool is_apart(cpy::Frame frame) override;
  PyObject* run_apart(const std::function<PyObject*()>& run) override;
  eval::CodeGate* for_interpreter() { return &gate_; }

 private:
  eval::CodeGate gate_;
  hook::Gated in_place_{this};
};

}  // namespace oxy::driver
