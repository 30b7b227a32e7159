#include "autograd/running/differentiable_graph.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/functions/basic_ops.h>
#include <torch/csrc/autograd/functions/utils.h>

#include <algorithm>
#include <functional>

#include "autograd/running/backward_node.h"
#include "autograd/running/related_results.h"
#include "autograd/running/remade_views.h"
#include "runtime/device/current.h"
#include "runtime/device/generators.h"
#include "runtime/values/tensors.h"
#include "torch_api/autograd_node.h"
#include "torch_api/error_text.h"

namespace oxy::autograd {
namespace {

using graph::OutputKind;
using passes::SavedValue;

// A view to which writes are errors.
bool is_restricted(const at::Tensor& tensor) {
  return tensor.is_view() && torch::autograd::impl::get_view_autograd_meta(tensor)->get_creation_meta() !=
                                 torch::autograd::CreationMeta::DEFAULT;
}

// The outputs whose history is spent, each behind those that it came from.
std::vector<size_t> in_order_made(const Joint& joint) {
  std::vector<size_t> order;
  std::vector<bool> is_in(joint.outputs.size());
  const std::function<void(size_t)> add = [&](size_t i) {
    if (joint.outputs[i].spent.empty() || is_in[i]) return;
    is_in[i] = true;
    for (const SpentSource& source : joint.outputs[i].spent_sources)
      if (!source.is_input) add(source.index);
    order.push_back(i);
  };
  for (size_t i = 0; i < joint.outputs.size(); ++i) add(i);
  return order;
}

class DifferentiableGraph final : public CompiledGraph {
 public:
  DifferentiableGraph(std::unique_ptr<CompiledGraph> forward, std::vector<Part> parts, Joint joint,
                      std::vector<graph::Output> outputs, std::vector<c10::Device> devices)
      : forward_(std::move(forward)),
        parts_(std::move(parts)),
        joint_(std::move(joint)),
        outputs_(std::move(outputs)),
        devices_(std::move(devices)),
        spent_(in_order_made(joint_)) {
    for (const Part& part : parts_) {
      if (!part.program) continue;
      const ForwardReplay::Slice& slice = part.program->replay().slice;
      if (!slice.random_devices.empty()) draws_again_on_ = slice.random_devices;
      for (size_t i = 0; i < slice.is_copied.size(); ++i)
        if (slice.is_copied[i] && std::ranges::find(copied_, slice.inputs[i]) == copied_.end())
          copied_.push_back(slice.inputs[i]);
    }
  }

  // A backward half that cannot be compiled is interpreted.
  runtime::Readiness readiness() override {
    using runtime::Readiness;
    if (const Readiness forward = forward_->readiness(); forward != Readiness::Ready) return forward;
    const auto is_pending = [](const Part& part) { return part.program && part.program->is_pending(); };
    return std::ranges::any_of(parts_, is_pending) ? Readiness::Pending : Readiness::Ready;
  }
  std::exception_ptr failure() const override { return forward_->failure(); }

  std::vector<at::Tensor> run(std::span<const at::Tensor> inputs, std::span<int64_t> symbols) override {
    if (!runs_here()) throw runtime::LeftToEager();
    std::vector<at::Tensor> results;
    Before before{std::vector<at::Tensor>(copied_.empty() ? 0 : inputs.size()), {}};
    for (const c10::Device& device : draws_again_on_)
      before.generators.push_back(runtime::generator_state(device));
    for (const size_t input : copied_) before.copies[input] = inputs[input].detach().clone();
    {
      const at::NoGradGuard no_grad;
      results = forward_->run(inputs, symbols);
    }
    try {
      return with_histories(results, inputs, symbols, before);
    } catch (const c10::AcceleratorError&) {
      throw;
    } catch (const std::exception& error) {
      throw runtime::FailedAfterRun(torch_api::error_text(error));
    }
  }

  bool is_long() const override { return forward_->is_long(); }
  runtime::DeviceGraphState device_graph_state() const override {
    runtime::DeviceGraphState state = forward_->device_graph_state();
    for (const Part& part : parts_)
      if (part.program) state.add(part.program->device_graph_state());
    return state;
  }
  bool holds_weights() const override { return forward_->holds_weights(); }
  bool valid(const InputOf& input) override { return forward_->valid(input); }

 private:
  // What the forward pass changes, as it was: what the parts need again.
  struct Before {
    std::vector<at::Tensor> copies;      // by input, undefined unless it is in copied_
    std::vector<at::Tensor> generators;  // their states on draws_again_on_
  };

  // A node runs on one device's stream of the forward pass. PyTorch's engine knows the default streams of the
  // others, and makes what comes and goes there wait for them.
  bool runs_here() const {
    return devices_.size() < 2 || std::ranges::all_of(devices_, runtime::is_default_stream_current);
  }

  // The outputs that the caller asked for, of the results of the forward pass.
  std::vector<at::Tensor> with_histories(std::vector<at::Tensor>& results, std::span<const at::Tensor> inputs,
                                         runtime::SymbolValues symbols, const Before& before) const {
    // An interpreted forward pass gives views that were made without grad, which may not be written to.
    for (size_t i = 0; i < joint_.carriers(); ++i)
      if (results[i].is_view()) results[i] = results[i].detach();
    torch::autograd::edge_list joins(joint_.joins);
    RemadeViews views(joint_.view_calls, symbols);
    for (const Part& part : parts_) {
      if (part.program)
        keep(*add_history(part, results, inputs, symbols, joins), part, results, inputs, before);
      else
        results[part.tangents[0]] = with_history(part.tangents[0], part.parent, results, inputs, views);
    }
    for (const size_t i : spent_) add_spent_history(i, results, inputs);
    for (size_t i = joint_.with_tangents(); i < joint_.outputs.size(); ++i)
      results[i] = with_history(i, -1, results, inputs, views);
    views.age();
    std::vector<at::Tensor> outputs;
    outputs.reserve(joint_.caller_outputs.size());
    for (const int32_t i : joint_.caller_outputs) outputs.push_back(results[static_cast<size_t>(i)]);
    return outputs;
  }

  torch::autograd::Edge end_of(const Gradient& gradient, const std::vector<at::Tensor>& results,
                               std::span<const at::Tensor> inputs,
                               const torch::autograd::edge_list& joins) const {
    if (gradient.result < 0)
      return torch::autograd::impl::gradient_edge(inputs[static_cast<size_t>(gradient.input)]);
    const auto place = static_cast<size_t>(gradient.result);
    if (place >= joint_.with_tangents()) return joins[place - joint_.with_tangents()];
    return torch::autograd::impl::gradient_edge(results[place]);
  }

  // Fills in those of `joins` that belong to the part.
  torch_api::NodePointer<BackwardNode> add_history(const Part& part, const std::vector<at::Tensor>& results,
                                                   std::span<const at::Tensor> inputs,
                                                   runtime::SymbolValues symbols,
                                                   torch::autograd::edge_list& joins) const {
    torch::autograd::edge_list edges;
    edges.reserve(part.gradients.size());
    for (const size_t g : part.gradients)
      edges.push_back(end_of(joint_.gradients[g], results, inputs, joins));
    auto node = torch_api::make_node<BackwardNode>(part.program, symbols, std::move(edges));
    if (part.tangents.size() == 1 && part.tangents[0] < joint_.carriers()) {
      torch::autograd::set_history(results[part.tangents[0]], node);
    } else {
      for (size_t place = 0; place < part.tangents.size(); ++place) {
        const size_t t = part.tangents[place];
        if (t < joint_.with_tangents()) {
          node->add_input_metadata(results[t]);
        } else {
          node->add_input_of(place);
          joins[t - joint_.with_tangents()] = {node, static_cast<uint32_t>(place)};
        }
      }
      for (const size_t place : part.made) {
        torch::autograd::edge_list next = {torch::autograd::Edge(node, static_cast<uint32_t>(place))};
        torch::autograd::set_history(results[part.tangents[place]],
                                     torch_api::make_node<OutputNode>(std::move(next)));
      }
    }
    for (const Part::Saved& saved : part.saved) {
      const auto index = static_cast<size_t>(saved.value.index);
      switch (saved.value.kind) {
        case SavedValue::Kind::Input:
          node->save(inputs[index], false);
          break;
        case SavedValue::Kind::Output:
          node->save(saved.is_foreign ? results[index].detach() : results[index], saved.is_own);
          break;
        case SavedValue::Kind::Shared:
          node->save(runtime::shared_copy(results[index]), false);
          break;
        case SavedValue::Kind::Extra:
          node->save(results[joint_.outputs.size() + index], false);
          break;
      }
    }
    for (const size_t output : part.watched) node->watch(results[output]);
    return node;
  }

  // What the part's forward pass needs to be run again.
  static void keep(BackwardNode& node, const Part& part, const std::vector<at::Tensor>& results,
                   std::span<const at::Tensor> inputs, const Before& before) {
    const Replay& replay = part.program->replay();
    const ForwardReplay::Slice& slice = replay.slice;
    for (size_t i = 0; i < replay.saved.size(); ++i) {
      if (replay.saved[i]) continue;
      const auto end = std::ranges::find(slice.ends, std::optional(i));
      std::optional<size_t> edge;
      if (end != slice.ends.end()) edge = static_cast<size_t>(end - slice.ends.begin());
      if (i >= slice.inputs.size())
        node.keep(results[slice.results[i - slice.inputs.size()]], edge);
      else
        node.keep(slice.is_copied[i] ? before.copies[slice.inputs[i]] : inputs[slice.inputs[i]], edge);
    }
    if (!slice.random_devices.empty())
      for (const at::Tensor& generator : before.generators) node.keep(generator, {});
  }

  // A history that raises eager's error.
  void add_spent_history(size_t i, const std::vector<at::Tensor>& results,
                         std::span<const at::Tensor> inputs) const {
    torch::autograd::edge_list behind;
    for (const SpentSource& source : joint_.outputs[i].spent_sources)
      behind.push_back(torch::autograd::impl::gradient_edge(source.is_input ? inputs[source.index]
                                                                            : results[source.index]));
    auto error = torch_api::make_node<torch::autograd::Error>(joint_.outputs[i].spent, std::move(behind));
    error->add_input_metadata(results[i]);
    torch::autograd::impl::set_gradient_edge(results[i], torch::autograd::Edge(std::move(error), 0));
  }

  // The forward output as autograd is to know it: a view of a tensor that has its history, or a tensor
  // without any. `parent`: another output of which it is a view, itself a view perhaps; -1: as outputs_ has
  // it.
  at::Tensor with_history(size_t i, int32_t parent, const std::vector<at::Tensor>& results,
                          std::span<const at::Tensor> inputs, RemadeViews& views) const {
    const graph::Output& output = outputs_[i];
    if (output.kind == OutputKind::Value) return results[i];
    const auto alias = static_cast<size_t>(parent >= 0 ? parent : output.alias);
    const bool is_of_input = parent < 0 && output.kind == OutputKind::InputAlias;
    const at::Tensor& base = is_of_input ? inputs[alias] : results[alias];
    if (!joint_.outputs[i].requires_grad) return base.requires_grad() ? results[i].detach() : results[i];
    const at::Tensor view = remade_view(i, base, results[i], views);
    views.know(joint_.outputs[i].value, view);
    return view;
  }

  // `plain`: its elements, without a history.
  at::Tensor remade_view(size_t i, const at::Tensor& base, const at::Tensor& plain,
                         RemadeViews& views) const {
    const ViewState state = joint_.outputs[i].view_state;
    const auto& steps = joint_.outputs[i].view_steps;
    if (state != ViewState::Free || (is_restricted(base) && !steps.empty())) {
      at::Tensor view = views.make(steps, base);
      if (is_outdated(state)) views.add_stale(view);
      return view;
    }
    const at::AutoGradMode mode(true);
    return view_like(base, plain);
  }

  std::unique_ptr<CompiledGraph> forward_;
  std::vector<Part> parts_;
  Joint joint_;
  std::vector<graph::Output> outputs_;
  std::vector<c10::Device> devices_;
  std::vector<size_t> spent_;  // outputs, behind those that they came from
  // For gradients of gradients: inputs that a part needs as they were, and whether one draws random numbers.
  std::vector<size_t> copied_;
  std::vector<c10::Device> draws_again_on_;
};

}  // namespace

std::unique_ptr<CompiledGraph> make_differentiable_graph(std::unique_ptr<CompiledGraph> forward,
                                                         std::vector<Part> parts, Joint joint,
                                                         std::vector<graph::Output> outputs,
                                                         std::vector<c10::Device> devices) {
  return std::make_unique<DifferentiableGraph>(std::move(forward), std::move(parts), std::move(joint),
                                               std::move(outputs), std::move(devices));
}

}  // namespace oxy::autograd
