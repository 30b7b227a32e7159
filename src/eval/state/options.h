// Options of a capture. The driver fills them in.
#pragma once

#include <Python.h>

#include <optional>
#include <set>
#include <span>
#include <string>

#include "eval/rebuild/torch_warnings.h"
#include "eval/treatment/code_gate.h"
#include "guards/guard_set.h"
#include "trace/session/known_values.h"

namespace oxy::eval {

class SpecifiedSizes;

struct CaptureOptions {
  int64_t max_instructions = 5'000'000;  // of all frames; more is a Break of kind TooLong
  size_t max_nodes = 100'000;            // of the recording; more is a Break of kind TooLong
  int max_depth = 950;                   // of nested calls
  bool torch_program = false;            // also make Capture::torch_program, for a backend of the user's
  // The program may look at elements of small integer tensors (trace/session/known_values.h), which are
  // guarded then.
  bool knows_elements = false;
  // Of those that vary. Nothing: it may not look at any.
  std::optional<trace::VaryingElements> varying_elements;
  const std::set<std::string>* varying_numbers = nullptr;  // places, as GuardSet::describe(); null: none
  bool tells_that_it_compiles = true;                      // torch.compiler.is_compiling() says yes
  // Sizes and strides of tensors, and ints, are symbols instead of numbers where they vary.
  bool symbols = false;
  bool data_symbols = true;                                      // and numbers and sizes that only data tell
  const std::set<guards::ChangedSize>* varying_sizes = nullptr;  // those that do; null: none
  const std::set<guards::ChangedSize>* fixed_sizes = nullptr;    // those that are numbers all the same
  bool all_sizes_vary = false;                      // all sizes of tensors that are reached from arguments
  bool all_numbers_vary = false;                    // all ints among the arguments
  const SpecifiedSizes* specified_sizes = nullptr;  // what dynamic_shapes= says of this call; null: nothing
  PendingWarnings* warnings = nullptr;              // null: an operation that warns ends the region
  CodeGate* gate = nullptr;                         // null: C code may run any code of the program's
};

}  // namespace oxy::eval
