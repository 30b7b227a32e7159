// The state of the interpreter, which runs a function's bytecode on real Python objects, with trace tensors
// in place of tensors. Plain functions take an Interpreter and do the work, one room a subject.
//
// Every value is a real PyObject. Three kinds are told apart:
//   - Constants and immutable objects of C types are used as they are.
//   - External objects existed before the call. They are registered in `externals` when they are first read
//     (admission), so that everything that is read of them is guarded. They are never written: writes go to a
//     shadow (shadow.h) and are performed after each run. An external tensor is never seen: admit() puts a
//     trace tensor in its place.
//   - Fresh objects were made while interpreting. They are changed for real, and made again from a template
//     at each run (rebuild/template.h).
// C functions run for real if they are known to read only their arguments. Python functions are inlined.
// Whatever is not understood throws Break. The segment then ends before the current instruction of the
// outermost frame.
//
// Conventions of all functions of this layer, unless they say otherwise:
//   - The GIL is held. PyObject* arguments and results are borrowed, a Ref is owned.
//   - A null Ref, false or -1 means that a Python exception is set, which the program's own code raises here.
//   - Any function may throw Break. Functions that say "stops" throw it.
//   - A null PyObject* for a value that is written means that the place is deleted.
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
#include "eval/rebuild/default_device.h"
#include "eval/state/autograd_lines.h"
#include "eval/state/break.h"
#include "eval/state/calls.h"
#include "eval/state/externals.h"
#include "eval/state/frame.h"
#include "eval/state/numbers.h"
#include "eval/state/options.h"
#include "eval/state/shadows.h"
#include "guards/guard_set.h"
#include "trace/recorder/recorder.h"

namespace oxy::eval {

class TorchCallLog;

struct Interpreter {
  explicit Interpreter(const CaptureOptions& options);
  ~Interpreter();
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;

  // Throws a Break of kind Instruction. The texts are for the user; `hint` says how to avoid it.
  [[noreturn]] void stop(std::string reason, std::string hint = "") const;
  guards::GuardSet& guards() const { return capture->guards; }

  CaptureOptions options;
  std::unique_ptr<Capture> capture;
  Numbers numbers;
  AutocastCache autocast_cache;  // before the recorder, which turns the cache off
  DefaultDevices default_devices;
  trace::Recorder recorder;
  std::unique_ptr<TorchCallLog> torch_calls;  // null unless CaptureOptions::torch_program
  Externals externals;
  Shadows shadows;
  Calls calls;

  Frame* frame = nullptr;                // the innermost one
  Frame* outermost = nullptr;            // of a segment; null: a whole call is captured
  int depth = 0;                         // how many frames are under way
  int64_t executed = 0;                  // instructions of the outermost frame so far
  int64_t total_executed = 0;            // instructions of all frames
  int64_t stop_at = -1;                  // end the capture at this value of `executed`; -1: at none
  std::vector<std::string> break_lines;  // the user's lines at the moment of a Break, innermost first
  Ref handled_before;                    // the exception that was being handled at the start
  Ref handled_after;                     // the one at the end of a segment, if it is another one
  // (text, checkpoint) -> that graph::Location in the recording.
  std::map<std::pair<std::string, int32_t>, graph::LocationId> locations;
  AutogradLines autograd_lines;  // those of `locations`
};

// The line of the user's code that the frame is at, for messages: "file:line in function".
std::string line_text(const Frame& frame);
// The same without the folder of the file. The line of the call that a function of the prelude stands for.
std::string short_line_text(const Frame& frame);

// The program looks at the exception that is being handled, or at its context. That is captured only if no
// exception was being handled at the start, which becomes a guard. Stops if one was.
void rely_on_nothing_handled(Interpreter& interpreter);

}  // namespace oxy::eval
