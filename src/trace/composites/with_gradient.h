// Functions of a tensor whose backward pass is a node of ours.
#pragma once

#include <ATen/core/LegacyTypeDispatch.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>

namespace oxy::trace {

// What `compute()` makes of `self` below autograd, with the node as its history. A node that needs the result
// has `save_result(result)`.
template <class NodePointer, class Compute>
at::Tensor with_gradient(const at::Tensor& self, const NodePointer& node, const Compute& compute) {
  node->set_next_edges(torch::autograd::collect_next_edges(self));
  at::Tensor result;
  {
    const at::AutoDispatchBelowAutograd below;
    result = compute();
  }
  torch::autograd::set_history(result, node);
  if constexpr (requires { node->save_result(result); }) node->save_result(result);
  return result;
}

}  // namespace oxy::trace
