#include "autograd/running/remade_views.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/variable.h>

#include <iterator>

#include "autograd/recording/view_creation.h"
#include "runtime/execution/interpreter.h"

namespace oxy::autograd {

namespace {

// Notes that the operator made the views in grad mode, when `source` did not require grad.
void note_creation(const std::vector<at::Tensor>& views, const at::Tensor& source, const OperatorSchema& op) {
  const bool is_one_of_several = op.returns.size() == 1 && op.returns[0].kind == ArgumentKind::TensorList;
  const CreationMeta made = is_one_of_several ? CreationMeta::MULTI_OUTPUT_NODE : CreationMeta::DEFAULT;
  for (const at::Tensor& view : views)
    torch::autograd::impl::get_view_autograd_meta(view)->set_creation_meta(
        torch::autograd::propagate_creation_meta(creation_of(source), made));
}

}  // namespace

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
      const at::AutoGradMode mode(call.grad_mode && call.requires_grad);
      results->second = runtime::run_node(call.node, [&](graph::ValueId) { return view; }, symbols_);
      if (call.grad_mode && !call.requires_grad) note_creation(results->second, view, *call.node.op);
    }
    view = results->second.at(step->output);
  }
  return view;
}

void RemadeViews::age() const {
  for (const at::Tensor& view : stale_)
    torch::autograd::impl::get_view_autograd_meta(view)->set_attr_version(
        static_cast<uint32_t>(view._version()) - 1);
}

}  // namespace oxy::autograd
