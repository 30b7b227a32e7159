// Connects the code gate of a capture (eval/treatment/code_gate.h) with the hook, which asks it about each
// frame.
#pragma once

#include "eval/treatment/code_gate.h"
#include "hook/hook.h"

namespace oxy::driver {

// Active on this thread while it lives. Its for_interpreter() goes into CaptureOptions::gate.
class CaptureGate final : public hook::FrameGate {
 public:
  bool admits(cpy::Frame frame) override;
  // Frames of the program's code that run during a capture without being part of it: finalizers, callbacks,
  // signal handlers. They run with the recording set aside (trace/session/set_aside.h).
  bool is_apart(cpy::Frame frame) override;
  PyObject* run_apart(const std::function<PyObject*()>& run) override;
  void notice_error() override;
  // Raises again what a signal handler has raised meanwhile (eval::Interrupted), whoever dropped it: Python
  // code runs in many places of a capture, and the handler in whatever runs first. Nothing otherwise.
  void raise_interruption();
  eval::CodeGate* for_interpreter() { return &gate_; }

 private:
  struct Raised {
    cpy::Ref type, value, traceback;
  };
  eval::CodeGate gate_;
  Raised interruption_;
  hook::Gated in_place_{this};
};

}  // namespace oxy::driver
