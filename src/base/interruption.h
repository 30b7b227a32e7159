// Lets a user stop work that takes long: Ctrl-C while kernels are compiled.
#pragma once

namespace oxy {

// A Python error is set that the caller has to raise. It comes from a signal handler, or from a backend of
// the user's. The call is not tried again in eager.
struct Interrupted {};

// Asks whether a signal's handler has raised, and has run those that wait for it.
using InterruptionCheck = bool (*)();
void set_interruption_check(InterruptionCheck check);

// While one lives, stop_if_interrupted() may throw on this thread: whoever made it handles that.
class Interruptible {
 public:
  Interruptible();
  ~Interruptible();
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;
};

// Throws Interrupted if a handler has raised. To be called between pieces of long work, by the thread that
// waits for it. Does nothing on other threads.
void stop_if_interrupted();

}  // namespace oxy
