// Runs a graph one operator at a time through PyTorch's dispatcher: backend="eager", constant folding, tests.
#pragma once

#include <ATen/core/Tensor.h>

#include <span>
#include <vector>

#include "graph/graph.h"
#include "runtime/values/tensors.h"

namespace oxy::runtime {

// The graph's outputs on these inputs (graph input i is inputs[i]) and constants (by handle). Runs recorded
// graphs, whose in-place operators write to the inputs as they go, and functional ones, whose mutations are
// copied into the inputs last. Outputs that alias an input or one another share its storage. Constants are
// never written. Autograd is off; every symbol in a size needs a value. Throws what the operators throw.
std::vector<at::Tensor> interpret(const graph::Graph& graph, std::span<const at::Tensor> inputs,
                                  std::span<const at::Tensor> constants, SymbolValues symbols = {});

// What the operator of one node returns.
std::vector<c10::IValue> call_node(const graph::Node& node,
                                   const std::function<at::Tensor(graph::ValueId)>& tensor,
                                   SymbolValues symbols = {});
// The returned tensors of one node, lists flattened; undefined where the operator returns none.
std::vector<at::Tensor> run_node(const graph::Node& node,
                                 const std::function<at::Tensor(graph::ValueId)>& tensor,
                                 SymbolValues symbols = {});

}  // namespace oxy::runtime
