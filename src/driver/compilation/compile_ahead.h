// Graphs that a thread of the background compiles before anybody asks for them.
//
// The thread makes the plan while the caller compiles another graph, and kernels are compiled while that one
// runs. Loading and finishing is left to the caller. What the thread has not begun when the graph is asked
// for, the caller does itself.
#pragma once

#include <exception>
#include <functional>
#include <memory>

#include "autograd/running/graph_compiler.h"
#include "driver/compilation/pending_graph.h"

namespace oxy::driver {

struct AheadSteps {
  // May throw, must not need the GIL, and is called once. What it holds must not be held by it alone: tensors
  // of which it is the last holder would need the GIL to end.
  std::function<void()> plan;
  // Has the plan's kernels compiled by the background. Gives null if it has none.
  std::function<std::unique_ptr<KernelRequest>()> request_kernels;
  // Makes the graph, with the GIL held; as GraphCompiler::try_compile. `kernels`: compiled ones; null if they
  // are yet to be compiled. `problem`: what a step before has thrown, or null.
  std::function<std::unique_ptr<runtime::CompiledGraph>(KernelRequest* kernels, std::exception_ptr problem)>
      finish;
};

std::unique_ptr<autograd::BegunCompilation> compile_ahead(AheadSteps steps);

}  // namespace oxy::driver
