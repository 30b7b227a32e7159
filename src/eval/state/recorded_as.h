#pragma once

#include <utility>

#include "eval/state/interpreter.h"

namespace oxy::eval {

// What is recorded while one lives has this graph::Location::checkpoint. If `closes_effects` says by what,
// nothing that existed before may be changed.
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
