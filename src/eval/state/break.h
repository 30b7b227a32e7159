// How a capture ends before the program does.
#pragma once

#include <Python.h>

#include <string>

#include "cpy/ref.h"

namespace oxy::eval {

// What a call of functools.lru_cache would have found: `cache` (a dict) has no `key` yet. Both null where
// nothing is missing.
struct MissingAnswer {
  cpy::Ref cache;
  cpy::Ref key;
};

// Capture cannot go past the current instruction. The texts are for explain() alone.
struct Break {
  std::string reason;
  std::string hint;
  MissingAnswer missing;     // why it cannot now, but may at a later call
  bool is_too_long = false;  // the frame is not to be tried again
  // C code was given a varying number (numbers/varying_number.h), which it can do nothing with.
  bool is_of_varying_number() const { return reason.find("VaryingNumber") != std::string::npos; }
};

// A Python error is set that is the caller's to raise: a signal handler's, or that of a backend of the
// user's.
struct Interrupted {};

}  // namespace oxy::eval
