// Freezing: weights that nobody writes to become constants, so that they can be folded and packed. Weights
// that the optimised graph still reads unchanged stay inputs. docs/layers/passes.md has the rules.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <span>
#include <vector>

#include "base/dump.h"
#include "graph/graph.h"
#include "passes/pipeline/pipeline.h"
#include "runtime/execution/freeze.h"

namespace oxy::driver {

// What a graph needs that depends on sizes alone (passes::separate_size_constants).
struct SizePart {
  graph::Graph graph;
  std::vector<at::Tensor> inputs;  // the constants that it reads; by input
};

struct FrozenGraph {
  graph::Graph graph;  // optimised by the passes
  // By input of `graph`: its number among the captured inputs. The other inputs, behind these, are the
  // outputs of `size_part`.
  std::vector<int32_t> inputs;
  std::optional<SizePart> size_part;
  std::vector<at::Tensor> constants;  // by handle
  // The weights from which constants of the graph were computed: captured input number, and the watch for
  // writes.
  std::vector<std::pair<int32_t, runtime::FrozenTensor>> weights;
  int64_t constant_bytes = 0;  // bytes of the copies that folding and packing made
};

// By default, folded and packed copies may take this share of the weights' bytes. A larger share is faster
// where weights are large and batches small.
inline constexpr double kDefaultCopyBudget = 0.15;

struct MemoryBudgets {
  // The bytes of copies, as a share of the bytes of `weights`. The smallest copies are made first.
  double copies = kDefaultCopyBudget;
  double activations = 1;  // passes::Options::activation_memory_budget
};

// The options of the passes for a graph whose weights are not frozen.
passes::Options plain_options(const graph::Graph& graph);

// Whether what depends on sizes alone is computed apart from the graph.
enum class SizeValues : uint8_t { Apart, InPlace };

// Runs the passes on a functional graph. `weights[i]`: the tensor of input i if it may be frozen, else
// undefined. Without weights this is the plain pipeline. `constants`: those of the recording, by handle.
// `dump` may be null.
FrozenGraph optimise(graph::Graph graph, std::vector<at::Tensor> constants,
                     std::span<const at::Tensor> weights, const MemoryBudgets& budgets,
                     SizeValues size_values, const Dump* dump);

}  // namespace oxy::driver
