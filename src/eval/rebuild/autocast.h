// What a program may change of its thread's autocast state. The cache of casts is off while a program is
// evaluated (trace/recorder.h), so that whether it is on for the program is kept beside it.
#pragma once

#include "runtime/device/autocast.h"

namespace oxy::eval {

struct AutocastState {
  runtime::AutocastByDevice devices;
  int nesting = 0;

  static AutocastState current();  // this thread's
  void apply() const;
  bool operator==(const AutocastState&) const = default;
};

// The program's view of the cache of casts.
struct AutocastCache {
  bool was_enabled;
  bool enabled;
  bool clears = false;

  AutocastCache();  // as it is on this thread
};

// What a segment leaves behind: applied after it has run.
struct AutocastChange {
  AutocastState state;
  int nesting = 0;  // to be added
  bool cache_enabled = true;
  bool clears_cache = false;

  void apply() const;
};

}  // namespace oxy::eval
