// The state of the symbolic interpreter, which runs a function's bytecode on real Python objects, with trace
// tensors in place of tensors. What it does are plain functions that are given it: one room a subject.
//
// Every value is a real PyObject. Three kinds are told apart:
//   - constants and immutable objects of C types: used as they are;
//   - external objects, which existed before the call: registered in `externals` when they are first read, so
//     that what is read of them is guarded. They are never written: writes go to a shadow (shadow.h) and are
//     done after the segment has run. External tensors never appear: admit() puts their trace tensor in
//     their place;
//   - fresh objects, made while interpreting: changed for real, and rebuilt from a template at every run
//   (rebuild/template.h).
// C functions run for real when they are known to read only what they are given; Python functions are
// inlined. Whatever is not understood throws Break: the segment then ends before the instruction of the
// outermost frame that was being interpreted.
#pragma once

#include <Python.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cpy/ref.h"
#include "eval/rebuild/autocast.h"
#include "eval/rebuild/capture.h"
#include "eval/state/break.h"
#include "eval/state/calls.h"
#include "eval/state/externals.h"
#include "eval/state/frame.h"
#include "eval/state/numbers.h"
#include "eval/state/options.h"
#include "eval/state/shadows.h"
#include "guards/guard_set.h"
#include "trace/recorder.h"

namespace oxy::eval {

class TorchCallLog;

struct Interpreter {
  explicit Interpreter(const CaptureOptions& options);
  ~Interpreter();
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;

  [[noreturn]] void stop(std::string reason, std::string hint = "") const;  // throws Break
  guards::GuardSet& guards() const { return capture->guards; }

  CaptureOptions options;
  std::unique_ptr<Capture> capture;
  AutocastCache autocast_cache;  // before the recorder, which turns the cache off
  trace::Recorder recorder;
  std::unique_ptr<TorchCallLog> torch_calls;  // null unless they are asked for
  Externals externals;
  Shadows shadows;
  Numbers numbers;
  Calls calls;

  Frame* frame = nullptr;      // the innermost one
  Frame* outermost = nullptr;  // of a segment; null: a whole call is captured
  int depth = 0;
  int64_t executed = 0;  // instructions of the outermost frame
  int64_t total_executed = 0;
  int64_t stop_at = -1;                  // a value of `executed`; -1: none
  std::vector<std::string> break_lines;  // the user's lines at the moment of a Break, innermost first
  Ref handled_before;                    // the exception that was being handled at the start
  Ref handled_after;                     // and at the end of a segment, if it is another one
  std::map<std::pair<std::string, int32_t>, graph::LocationId>
      locations;  // in the graph, by text and checkpoint
};

std::string line_text(const Frame& frame);

// What a program sees of the exception being handled, and of those in its context, holds as long as no
// other was being handled at the start. Stops if one was.
void rely_on_nothing_handled(Interpreter& interpreter);

}  // namespace oxy::eval
