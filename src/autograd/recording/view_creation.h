// How autograd takes a tensor to have been made, if it is a view: that decides whether it may be written to.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/variable.h>

namespace oxy::autograd {

using torch::autograd::CreationMeta;

inline CreationMeta creation_of(const at::Tensor& tensor) {
  return tensor.is_view() ? torch::autograd::impl::get_view_autograd_meta(tensor)->get_creation_meta()
                          : CreationMeta::DEFAULT;
}

}  // namespace oxy::autograd
