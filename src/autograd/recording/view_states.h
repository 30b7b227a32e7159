// What autograd thinks of writes to the results of a region that are views.
#pragma once

#include <ATen/core/Tensor.h>

#include <unordered_map>
#include <vector>

#include "autograd/recording/joint.h"

namespace oxy::autograd {

// The states of `outputs` when it is made. That has to be before anything asks for their histories: autograd
// makes the history of an unrecorded view then.
class ViewStates {
 public:
  explicit ViewStates(const std::vector<at::Tensor>& outputs);

  // Free for a tensor that is no output or does not require grad.
  ViewState of(const at::Tensor& tensor) const;

 private:
  std::unordered_map<const c10::TensorImpl*, ViewState> restricted_;
};

}  // namespace oxy::autograd
