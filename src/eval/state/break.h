// The C++ exceptions that end a capture before the program does.
#pragma once

#include <Python.h>

#include <string>

#include "base/interruption.h"
#include "cpy/ref.h"

namespace oxy::eval {

// A function of functools.lru_cache was called, and its `cache` (a dict) has no `key` for the arguments yet.
struct MissingAnswer {
  cpy::Ref cache;
  cpy::Ref key;
};

enum class BreakKind : uint8_t {
  Instruction,    // the current instruction cannot be captured
  MissingAnswer,  // it can be captured at a later call, once the cache in `missing` has its key
  Raised,         // the program raises, out of what is captured
  TooLong,        // CaptureOptions::max_instructions or max_nodes is reached
};

// A graph break: the capture cannot go past the current instruction. The texts are for people only. No
// decision depends on them.
struct Break {
  std::string reason;
  std::string hint;
  BreakKind kind = BreakKind::Instruction;
  MissingAnswer missing;  // set for BreakKind::MissingAnswer only
};

using oxy::Interrupted;

}  // namespace oxy::eval
