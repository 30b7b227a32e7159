// Marks what is recorded during a scope: a checkpoint, a backward pass.
#pragma once

#include <utility>

#include "eval/state/interpreter.h"

namespace oxy::eval {

// While one lives, recorded nodes get this graph::Location::checkpoint. If `closes_effects` is not null, the
// code that is interpreted runs at another time too (a checkpoint, a backward pass). Then writes to external
// objects stop, and the text names the cause.
class RecordedAs {
 public:
  RecordedAs(Interpreter& interpreter, int32_t checkpoint, const char* closes_effects = nullptr)
      : interpreter_(interpreter),
        checkpoint_(std::exchange(interpreter.calls.checkpoint, checkpoint)),
        closed_by_(interpreter.shadows.closed_by) {
    if (!closed_by_) interpreter.shadows.closed_by = closes_effects;
  }
  ~RecordedAs() {
    interpreter_.calls.checkpoint = checkpoint_;
    interpreter_.shadows.closed_by = closed_by_;
  }
  RecordedAs(const RecordedAs&) = delete;
  RecordedAs& operator=(const RecordedAs&) = delete;

 private:
  Interpreter& interpreter_;
  int32_t checkpoint_;
  const char* closed_by_;
};

}  // namespace oxy::eval
