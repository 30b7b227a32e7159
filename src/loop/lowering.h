#pragma once

#include "graph/graph.h"
#include "loop/program.h"

namespace oxy::loop {

struct LoweringOptions {
  bool inline_pointwise = true;  // off: every node is realised (for tests)
  // Squares and products of single precision are accumulated in double, as eager's kernels for the host do.
  bool accumulates_in_double = true;
  // The same arguments give the same result however many threads there are: where several elements are
  // written to one place (ops::Traits::scatters), eager's kernels do it in order, or say that they cannot.
  bool deterministic = false;
};

// Lowers a functional, decomposed graph: every node by its operator's lowering rule, or as an extern call.
Program lower(const graph::Graph& graph, const LoweringOptions& options = {});

}  // namespace oxy::loop
