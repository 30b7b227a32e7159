// Automatic freezing: weights that nobody writes to are folded and packed; what is only read stays an input.
#pragma once

#include <ATen/core/Tensor.h>

#include <span>
#include <vector>

#include "base/dump.h"
#include "graph/graph.h"
#include "passes/pipeline/pipeline.h"
#include "runtime/execution/freeze.h"

namespace oxy::driver {

struct FrozenGraph {
  graph::Graph graph;                 // optimised
  std::vector<int32_t> inputs;        // for each input of `graph`, its number among the captured inputs
  std::vector<at::Tensor> constants;  // by handle
  // The weights that constants of the graph were computed from: captured input number and barrier.
  std::vector<std::pair<int32_t, runtime::FrozenTensor>> weights;
  int64_t constant_bytes = 0;  // of copies that folding and packing made
};

// The share of the weights' bytes that copies of weights, folded or packed, may take. More is faster where
// weights are large and batches small.
inline constexpr double kDefaultCopyBudget = 0.15;

struct MemoryBudgets {
  // Copies of weights stay within so many times the bytes of `weights`: the smallest ones are made first.
  double copies = kDefaultCopyBudget;
  double activations = 1;  // passes::Options::activation_memory_budget
};

// What the passes do with a graph that freezes nothing.
passes::Options plain_options(const graph::Graph& graph);

// Optimises a functional graph. `weights[i]` is the tensor behind input i if it may be frozen, undefined
// otherwise; with no weights this is the plain pipeline of passes. `constants` are those of the recording.
FrozenGraph optimise(graph::Graph graph, std::vector<at::Tensor> constants,
                     std::span<const at::Tensor> weights, const MemoryBudgets& budgets, const Dump* dump);

}  // namespace oxy::driver
