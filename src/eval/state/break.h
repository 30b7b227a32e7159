// How a capture ends before the program does.
#pragma once

#include <Python.h>

#include <string>

#include "cpy/ref.h"

namespace oxy::eval {

// What a call of functools.lru_cache would have found: `cache` (a dict) has no `key` yet.
struct MissingAnswer {
  cpy::Ref cache;
  cpy::Ref key;
};

enum class BreakKind : uint8_t {
  Instruction,    // the current instruction does what is not captured
  MissingAnswer,  // it may be at a later call: `missing`
  TooLong,        // the capture has grown too long
};

// Capture cannot go past the current instruction. The texts are for people: nothing depends on them.
struct Break {
  std::string reason;
  std::string hint;
  BreakKind kind = BreakKind::Instruction;
  MissingAnswer missing;  // of BreakKind::MissingAnswer alone
};

// A Python error is set that is the caller's to raise: a signal handler's, or that of a backend of the
// user's.
struct Interrupted {};

}  // namespace oxy::eval
