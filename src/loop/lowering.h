#pragma once

#include "graph/graph.h"
#include "loop/program.h"

namespace oxy::loop {

struct LoweringOptions {
  bool inline_pointwise = true;  // off: every node is realised (for tests)
  // Squares and products of single precision are accumulated in double, as eager's kernels for the host do.
  bool accumulates_in_double = true;
  // torch.use_deterministic_algorithms(): operators that scatter (ops::Traits::scatters) are eager's kernels,
  // which keep the order of writes to one place, or raise.
  bool deterministic = false;
  // The device's kernels have scans (loop::is_scan). Elsewhere they are eager's.
  bool has_scans = false;
  // Tensors that are joined (cat, stack) are one loop over the result, whose elements choose the tensor that
  // they are of, where that reads no more. Else each is a loop that writes its part.
  bool chooses_among_joined = false;
  // From so many elements on, a root of each costs more than a kernel that makes those of the channels.
  int64_t roots_worth_a_kernel = 0;
};

// Lowers a functional, decomposed graph: every node by its operator's lowering rule, or as an extern call.
Program lower(const graph::Graph& graph, const LoweringOptions& options = {});

}  // namespace oxy::loop
