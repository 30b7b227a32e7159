// Fuses a loop program, orders it, plans its memory and asks the backend for its kernels.
#pragma once

#include "backend/backend.h"
#include "loop/program.h"
#include "plan/plan.h"

namespace oxy::backend {

// Everything from a loop program to kernels as text. Near linear in the number of steps.
plan::Plan schedule(loop::Program program, const Backend& backend, const ScheduleOptions& options);

}  // namespace oxy::backend
