// Graphs that a thread of the background compiles before anybody asks for them.
//
// The thread makes the plan while the caller compiles another graph, and kernels are compiled while that one
// runs. Loading and finishing is left to the caller. What the thread has not begun when the graph is asked
// for, the caller does itself.
#pragma once

#include <functional>
#include <memory>

#include "autograd/running/graph_compiler.h"
#include "driver/compilation/pending_graph.h"

namespace oxy::driver {

struct AheadSteps {
  // May throw, must not need the GIL, and is called once. What it holds must not be held by it alone: tensors
  // of which it is the last holder would need the GIL to end.
  std::function<void()> plan;
  // Of the plan. Null: it has no kernels.
  std::function<std::unique_ptr<KernelRequest>()> request_kernels;
  // With the GIL. `kernels`: null, or done; `problem`: what `plan` threw. As GraphCompiler::try_compile.
  std::function<std::unique_ptr<runtime::CompiledGraph>(KernelRequest* kernels, std::exception_ptr problem)>
      finish;
};

std::unique_ptr<autograd::BegunCompilation> compile_ahead(AheadSteps steps);

}  // namespace oxy::driver
