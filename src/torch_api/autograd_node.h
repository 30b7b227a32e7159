// Nodes of autograd's graph, which their owners share: through std::shared_ptr up to PyTorch 2.12, through
// c10::intrusive_ptr from 2.13 on.
#pragma once

#include <torch/csrc/autograd/edge.h>
#include <torch/csrc/autograd/function.h>

#include <memory>
#include <utility>

#include "torch_api/release.h"

namespace oxy::torch_api {

#if OXYFUEL_TORCH_AT_LEAST(2, 13)

template <class T>
using NodePointer = c10::intrusive_ptr<T>;

template <class T, class... Arguments>
NodePointer<T> make_node(Arguments&&... arguments) {
  return c10::make_intrusive<T>(std::forward<Arguments>(arguments)...);
}

#else

template <class T>
using NodePointer = std::shared_ptr<T>;

// deleteNode() frees long chains of nodes without recursion.
template <class T, class... Arguments>
NodePointer<T> make_node(Arguments&&... arguments) {
  return NodePointer<T>(new T(std::forward<Arguments>(arguments)...), torch::autograd::deleteNode);
}

#endif

}  // namespace oxy::torch_api
