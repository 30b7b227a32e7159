// Code of the program's that runs in the middle of a recording. Mostly it has nothing to do with it:
// finalizers, callbacks of the garbage collector, signal handlers.
#pragma once

#include "trace/session.h"

namespace oxy::trace {

// While it lives, this thread has no recording: torch functions run, and others may be recorded.
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

// While one lives, functions of the program's that torch calls on this thread are part of the recording: the
// fake functions and formulas of its operators.
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
