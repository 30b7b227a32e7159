#include "autograd/running/remade_views.h"

#include <ATen/core/grad_mode.h>

#include <iterator>

#include "runtime/execution/interpreter.h"

namespace oxy::autograd {

at::Tensor RemadeViews::make(const std::vector<ViewStep>& steps, const at::Tensor& base) {
  at::Tensor view = base;
  auto step = steps.begin();
  for (auto last = steps.end(); last != steps.begin(); --last)
    if (const auto known = known_.find(std::prev(last)->value); known != known_.end()) {
      view = known->second;
      step = last;
      break;
    }
  for (; step != steps.end(); ++step) {
    const auto [results, is_new] = results_.try_emplace(step->node);
    if (is_new) {
      const ViewCall& call = calls_.at(step->node);
      const at::AutoGradMode mode(call.grad_mode);
      results->second = runtime::run_node(call.node, [&](graph::ValueId) { return view; }, symbols_);
    }
    view = results->second.at(step->output);
  }
  return view;
}

}  // namespace oxy::autograd
