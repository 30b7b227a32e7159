// Fuses a loop program, orders it, plans its memory and prints its kernels.
#pragma once

#include <string>
#include <vector>

#include "codegen/target.h"
#include "loop/program.h"
#include "plan/plan.h"

namespace oxy::sched {

struct Options {
  int threads = 1;                    // that the runtime will use
  bool fuse = true;                   // off: one kernel a computation (for tests)
  bool all_arguments = false;         // kernels that nobody shares take integers as arguments too (for tests)
  std::vector<bool> released_inputs;  // by input: nobody else holds it, it is freed after its last use
  std::string* log = nullptr;         // receives the schedule's text form if set
};

// The whole back end up to source text. Near linear in the number of steps.
plan::Plan schedule(loop::Program program, const codegen::Target& target, const Options& options);

}  // namespace oxy::sched
