// Code of the program's that runs in the middle of a recording. Mostly it is not part of the recording:
// finalizers, callbacks of the garbage collector, signal handlers.
#pragma once

#include "trace/session/session.h"

namespace oxy::trace {

// While one lives, this thread has no recording: torch functions run for real, and another recording may
// begin.
class SetAside {
 public:
  SetAside() : session_(recording_session()), was_paused_(session_paused()) { set_current_session(nullptr); }
  ~SetAside() {
    set_current_session(session_);
    pause_session(was_paused_);
  }
  SetAside(const SetAside&) = delete;
  SetAside& operator=(const SetAside&) = delete;

 private:
  Session* session_;
  bool was_paused_;
};

// While one lives, functions of the program's that torch calls on this thread are part of the recording.
// These are the fake functions and the formulas for gradients of its own operators. May be nested.
class PartOfRecording {
 public:
  PartOfRecording() { ++depth(); }
  ~PartOfRecording() { --depth(); }
  PartOfRecording(const PartOfRecording&) = delete;
  PartOfRecording& operator=(const PartOfRecording&) = delete;

  static bool is_alive() { return depth() > 0; }

 private:
  static int& depth();
};

}  // namespace oxy::trace
