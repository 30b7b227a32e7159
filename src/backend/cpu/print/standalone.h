// A kernel as a program of its own, for reading, timing and profiling it outside the process that made it.
#pragma once

#include <cstdint>
#include <string>

#include "plan/plan.h"

namespace oxy::backend::cpu {

// The kernel's source followed by a `main` that allocates what the kernel's first launch in `plan` points to
// (sizes that are not numbers get a typical value), fills it, calls the kernel over the launch's whole extent
// on one thread and prints the time of a call. Compiles with no other file: g++ -O3 -march=native kernel.cpp
// && ./a.out
std::string standalone(const plan::Plan& plan, plan::KernelId kernel);

}  // namespace oxy::backend::cpu
