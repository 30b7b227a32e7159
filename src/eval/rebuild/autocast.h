// The autocast state of a thread, as far as a region can change it. The recorder turns the cache of casts off
// (trace/recorder/recorder.h), so the program's view of that cache is kept apart.
#pragma once

#include "runtime/device/autocast.h"

namespace oxy::eval {

// Whether autocast is on and its dtype, by device, and how deep `with torch.autocast` blocks nest.
struct AutocastState {
  runtime::AutocastByDevice devices;
  int nesting = 0;

  static AutocastState current();  // of this thread
  void apply() const;              // to this thread
  bool operator==(const AutocastState&) const = default;
};

// The program's view of the cache of casts.
struct AutocastCache {
  bool was_enabled;     // at the start of the capture
  bool enabled;         // now
  bool clears = false;  // the program has cleared the cache

  AutocastCache();  // takes the state of this thread
};

// The change that a segment leaves behind. It is applied after each run.
struct AutocastChange {
  AutocastState state;
  int nesting = 0;  // added to the thread's nesting; state.nesting is not used
  bool cache_enabled = true;
  bool clears_cache = false;

  void apply() const;
};

}  // namespace oxy::eval
