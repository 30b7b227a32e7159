// Training: a recording with its backward pass becomes a forward graph, and a backward graph compiled at
// first use.
#pragma once

#include <memory>

#include "autograd/recording/record_backward.h"
#include "autograd/running/graph_compiler.h"

namespace oxy::autograd {

// `recording` is functional and has a joint, `recorded` is its graph as it was before. The graph's results
// take part in autograd as eager's do. Throws Unsupported with a reason for the user.
std::unique_ptr<runtime::CompiledGraph> compile_differentiable(DifferentiableRecording recording,
                                                               graph::Graph recorded,
                                                               const GraphCompiler& compiler);

}  // namespace oxy::autograd
