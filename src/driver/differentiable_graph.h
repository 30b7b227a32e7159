// Training: a recording with its backward pass becomes a forward graph, and a backward graph compiled at
// first use.
#pragma once

#include <memory>

#include "driver/pipeline.h"

namespace oxy::driver {

// `recording` is functional and has a joint, `recorded` is its graph as it was before. The graph's results
// take part in autograd as eager's do. Throws Unsupported with a reason for the user.
std::unique_ptr<CompiledGraph> compile_differentiable(trace::Recording recording, graph::Graph recorded,
                                                      const CompileOptions& options, const Dump& dump);

}  // namespace oxy::driver
