// A compiled graph in stages: sizes and numbers that only data tell are read between them (passes/staging).
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <vector>

#include "graph/graph.h"
#include "passes/staging/stages.h"
#include "runtime/execution/compiled_graph.h"

namespace oxy::driver {

// Compiles one stage: a graph over the constants of the whole, by handle. `inputs`: by input of the stage,
// the input of the whole that it is; -1 for others.
using CompileStage = std::function<std::unique_ptr<runtime::CompiledGraph>(
    graph::Graph stage, const std::vector<int32_t>& inputs)>;

// `source`: functional, with at least one node that computes symbols.
std::unique_ptr<runtime::CompiledGraph> compile_in_stages(const graph::Graph& source,
                                                          std::vector<at::Tensor> constants,
                                                          const CompileStage& compile);

}  // namespace oxy::driver
