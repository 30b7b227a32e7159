// Views of a region's results and inputs, made by the operators with which the program made them.
//
// Most views are made anew by where their elements lie. Of one that may not be written to, autograd's errors
// name the operator that made it, so that has to be the program's.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <unordered_map>
#include <vector>

#include "autograd/recording/joint.h"
#include "graph/graph.h"
#include "runtime/values/tensors.h"

namespace oxy::autograd {

// For one run of a region, whose symbols have the values `symbols`; `calls` and `symbols` outlive it.
class RemadeViews {
 public:
  RemadeViews(const std::map<graph::NodeId, ViewCall>& calls, runtime::SymbolValues symbols)
      : calls_(calls), symbols_(symbols) {}

  // From now on `tensor` stands for the recorded value.
  void know(graph::ValueId value, const at::Tensor& tensor) { known_.insert_or_assign(value, tensor); }
  // The view to which the steps lead, from the last tensor on their way that is known, or else from `base`.
  // Results of one call are siblings, as in eager. `steps` is not empty.
  at::Tensor make(const std::vector<ViewStep>& steps, const at::Tensor& base);

  // The program has written to the base of the view since it made the view. No view can be made of a stale
  // one, so age() marks them as stale when all views are made.
  void add_stale(const at::Tensor& view) { stale_.push_back(view); }
  void age() const;

 private:
  const std::map<graph::NodeId, ViewCall>& calls_;
  runtime::SymbolValues symbols_;
  std::unordered_map<graph::ValueId, at::Tensor> known_;
  std::unordered_map<graph::NodeId, std::vector<at::Tensor>> results_;
  std::vector<at::Tensor> stale_;
};

}  // namespace oxy::autograd
