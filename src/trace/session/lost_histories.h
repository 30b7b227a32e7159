// Writes to memory by which autograd forgets where gradients of views flow.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/StorageImpl.h>

#include <vector>

#include "graph/graph.h"

namespace oxy::trace {

struct NodeHistory;

// A graph input, for what autograd does after a write to its memory.
struct InputMemory {
  const c10::StorageImpl* storage = nullptr;  // of the real tensor, not owned
  bool is_lost = false;                       // runtime::loses_history_when_written()
  bool is_view_of_input = false;              // and it has a history, so that it is such a view itself
};
InputMemory memory_of(const at::Tensor& real);

// PyTorch makes the history of a view anew after a write to its memory, from the tensor that it knows as the
// base. Throws Unsupported where that is no input of the graph and does not require grad: in eager, gradients
// of such a view no longer come to the inputs. `inputs` are by graph input.
void check_histories_survive(const graph::Graph& graph, const IdVector<graph::NodeId, NodeHistory>& histories,
                             const std::vector<InputMemory>& inputs);

}  // namespace oxy::trace
