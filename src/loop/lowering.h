#pragma once

#include "graph/graph.h"
#include "loop/program.h"

namespace oxy::loop {

struct LoweringOptions {
  bool inline_pointwise = true;  // off: every node is realised (for tests)
};

// Lowers a functional, decomposed graph: every node by its operator's lowering rule, or as an extern call.
Program lower(const graph::Graph& graph, const LoweringOptions& options = {});

}  // namespace oxy::loop
