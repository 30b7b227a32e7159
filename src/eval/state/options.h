// What a capture is asked to do.
#pragma once

#include <Python.h>

#include <set>
#include <span>
#include <string>

#include "eval/python/code_gate.h"
#include "eval/rebuild/torch_warnings.h"

namespace oxy::eval {

struct CaptureOptions {
  int64_t max_instructions = 5'000'000;
  size_t max_nodes = 100'000;
  int max_depth = 950;
  bool torch_program = false;
  bool knows_elements = false;  // of small integer tensors: those that the program looks at are guarded
  const std::set<std::string>* varying_numbers = nullptr;  // by the text of their sources; null: none
  PendingWarnings* warnings = nullptr;                     // null: what warns ends the region
  CodeGate* gate = nullptr;                                // null: C code may run any of the program's
};

}  // namespace oxy::eval
