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

// A compilation that a thread of the background does before anybody asks for its graph.
class BegunCompilation {
 public:
  BegunCompilation() = default;
  BegunCompilation(const BegunCompilation&) = delete;
  BegunCompilation& operator=(const BegunCompilation&) = delete;
  virtual ~BegunCompilation() = default;  // what is not begun yet is not done any more
  // From now on its kernels may be compiled. Before, they would delay those of the forward half.
  virtual void compile_kernels() = 0;
  // Waits for it, with the GIL held. Once. As GraphCompiler::try_compile.
  virtual std::unique_ptr<runtime::CompiledGraph> take() = 0;
};

struct GraphCompiler {
  using Compile = std::function<std::unique_ptr<runtime::CompiledGraph>(
      graph::Graph graph, std::vector<at::Tensor> constants, const std::string& stage,
      const runtime::Ownership& ownership)>;
  // Constants are by handle; `stage` is put before the names of dumped files. Throws Unsupported.
  Compile compile;
  // Null where `compile` throws, which has been told by then: the graph is to be interpreted.
  Compile try_compile;
  using Begin = std::function<std::unique_ptr<BegunCompilation>(
      graph::Graph graph, std::vector<at::Tensor> constants, const std::string& stage,
      const runtime::Ownership& ownership)>;
  // Null: nothing is compiled ahead. It gives null for a graph that is not to be compiled ahead.
  Begin begin;
  // What is done to a joint graph before it is cut. Null: nothing, and results may be views.
  std::function<graph::Graph(graph::Graph)> optimise;
  double activation_memory_budget = 1;  // passes::JointRoles
  bool wait = true;  // false: what they give may be pending, and all halves are compiled at once
};

}  // namespace oxy::autograd
