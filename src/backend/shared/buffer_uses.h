// Who writes and reads the buffers of a program, before it is normalised.
#pragma once

#include <vector>

#include "loop/program.h"

namespace oxy::backend {

struct ProgramUse {
  std::vector<loop::StepId> writers;  // in order
  std::vector<loop::StepId> readers;  // in order, each once
  int results = 0;                    // outputs and mutations
};

// By buffer.
IdVector<loop::BufferId, ProgramUse> uses_of(const loop::Program& program);

}  // namespace oxy::backend
