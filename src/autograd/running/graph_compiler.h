// What training asks of the compiler of functional graphs.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "runtime/execution/compiled_graph.h"

namespace oxy::autograd {

struct GraphCompiler {
  using Compile = std::function<std::unique_ptr<runtime::CompiledGraph>(
      graph::Graph graph, std::vector<at::Tensor> constants, const std::string& stage,
      const runtime::Ownership& ownership)>;
  // Constants are by handle; `stage` is put before the names of dumped files. Throws Unsupported.
  Compile compile;
  // Null where `compile` throws, which has been told by then: the graph is to be interpreted.
  Compile try_compile;
  // What is done to a joint graph before it is cut. Null: nothing, and results may be views.
  std::function<graph::Graph(graph::Graph)> optimise;
  double activation_memory_budget = 1;  // passes::JointRoles
  bool wait = true;  // false: what they give may be pending, and all halves are compiled at once
};

}  // namespace oxy::autograd
