// A finished recording: the graph of what a program called, as it was called.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/id.h"
#include "graph/graph.h"

namespace torch::autograd {
enum class CreationMeta : uint8_t;
}

namespace oxy::trace {

// What autograd knew of a recorded call at the time of the call.
struct NodeHistory {
  bool grad_mode = false;
  // By tensor that the node reads, in the order of graph::for_each_input: whether it requires grad. Empty if
  // none does. (The graph does not tell: `x.detach()` stands for the same value as x.)
  std::vector<bool> requires_grad;
  // It stands for an operator whose results share memory, but have version counters of their own:
  // unsafe_split(). Autograd does not notice it if such memory is written to.
  bool is_unsafe_view = false;
};

// A finished recording.
struct Recording {
  graph::Graph graph;                 // as recorded: views and in-place operators are nodes of their own
  std::vector<at::Tensor> constants;  // by handle
  // Handles of the constants that existed before the recording. Their data may change between runs, so the
  // caller has to guard them, make them inputs, or give the recording up.
  std::vector<int32_t> foreign_constants;
  int64_t meta_fallbacks = 0;  // operators whose metadata came from PyTorch's meta kernels
  std::vector<std::string> meta_fallback_names;
  IdVector<graph::NodeId, NodeHistory> histories;
  // By output that the caller asked for: whether it is no view to autograd although it shares memory, as
  // x.detach().
  std::vector<bool> is_detached;
  // Likewise, if it is a view without a history: how the view was made. Some of these may not be written to.
  std::vector<std::optional<torch::autograd::CreationMeta>> view_made;
  // Likewise: whether it has a version counter of its own although it shares memory, as x.data.
  std::vector<bool> is_data;
};

}  // namespace oxy::trace
