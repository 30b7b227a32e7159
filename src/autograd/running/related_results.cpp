#include "autograd/running/related_results.h"

#include <algorithm>
#include <map>
#include <utility>

#include "aten/operators.h"
#include "autograd/recording/view_creation.h"
#include "runtime/execution/forwarding_graph.h"
#include "runtime/values/convert.h"
#include "runtime/values/tensors.h"

namespace oxy::autograd {
namespace {

using graph::ValueId;

runtime::TensorSpec spec_of(const TensorMeta& meta, runtime::SymbolValues symbols) {
  return {runtime::dtype_to_torch(meta.dtype), runtime::numbers_of(meta.sizes, symbols),
          runtime::numbers_of(meta.strides, symbols), runtime::number_of(meta.storage_offset, symbols)};
}

class RelatedResults final : public runtime::ForwardingGraph {
 public:
  RelatedResults(std::unique_ptr<CompiledGraph> graph, Relations relations)
      : graph_(std::move(graph)), relations_(std::move(relations)) {}

  std::vector<at::Tensor> run(std::span<const at::Tensor> inputs, std::span<int64_t> symbols) override {
    std::vector<at::Tensor> results = graph_->run(inputs, symbols);
    for (const size_t i : relations_.detached)
      if (results[i].is_view()) results[i] = results[i].detach();
    std::vector<at::Tensor> hidden(relations_.hidden_bases.size());
    for (const Relations::View& view : relations_.views) {
      at::Tensor& result = results[view.result];
      if (view.base_result >= 0) {
        result = view_like(results[static_cast<size_t>(view.base_result)], result);
      } else if (view.hidden_base >= 0) {
        const auto number = static_cast<size_t>(view.hidden_base);
        if (!hidden[number].defined())
          hidden[number] =
              runtime::tensor_over(result.storage(), spec_of(relations_.hidden_bases[number], symbols));
        result = view_like(hidden[number], result);
      }
      if (!result.is_view()) continue;
      const CreationMeta before =
          view.input < 0 ? CreationMeta::DEFAULT : creation_of(inputs[static_cast<size_t>(view.input)]);
      torch::autograd::impl::get_view_autograd_meta(result)->set_creation_meta(
          torch::autograd::propagate_creation_meta(before, view.made));
    }
    for (const size_t i : relations_.data)
      if (!results[i].is_inference()) results[i] = results[i].variable_data();
    return results;
  }

 protected:
  CompiledGraph& inner() const override { return *graph_; }

 private:
  std::unique_ptr<CompiledGraph> graph_;
  Relations relations_;
};

// The tensor of which autograd takes the value to be a view: the first on the way back that no view made, or
// that is no view to autograd.
ValueId differentiable_base(const graph::Graph& recorded, ValueId value) {
  for (;;) {
    const graph::NodeId number = recorded.values[value].node;
    if (number == graph::kNoNode) return value;
    const graph::Node& node = recorded.nodes[number];
    if (!node.op->is_view() || node.op == op::detach()) return value;
    ValueId before = graph::kNoValue;
    graph::for_each_input(node, [&](ValueId id) {
      if (before == graph::kNoValue) before = id;
    });
    if (before == graph::kNoValue) return value;
    value = before;
  }
}

// Whether another output of the functional graph lies in the same memory.
bool shares_memory(const graph::Graph& graph, size_t output) {
  if (graph.outputs[output].kind != graph::OutputKind::Value) return true;
  return std::ranges::any_of(graph.outputs, [&](const graph::Output& other) {
    return other.kind == graph::OutputKind::OutputAlias && other.alias == static_cast<int32_t>(output);
  });
}

}  // namespace

Relations relations_of(const trace::Recording& recording, const Joint* joint, const graph::Graph& recorded,
                       bool keeps_views) {
  Relations relations;
  std::vector<size_t> output_of;  // by result
  for (size_t i = 0; i < recording.is_detached.size(); ++i)
    output_of.push_back(joint ? static_cast<size_t>(joint->caller_outputs[i]) : i);
  std::map<ValueId, std::vector<size_t>> views_of;  // by base: places among relations.views
  for (size_t i = 0; i < output_of.size(); ++i) {
    const graph::Output& output = recording.graph.outputs[output_of[i]];
    const bool may_share_memory = keeps_views || output.kind != graph::OutputKind::Value;
    if (recording.is_detached[i] && may_share_memory) relations.detached.push_back(i);
    if (recording.is_data[i]) relations.data.push_back(i);
    if (!recording.view_made[i]) continue;
    ValueId base = graph::kNoValue;
    if (output_of[i] < recorded.outputs.size())
      base = differentiable_base(recorded, recorded.outputs[output_of[i]].value);
    // The plan makes it a view of the input, which may not be what autograd takes it to be (x.detach()[0]).
    const bool is_of_input = output.kind == graph::OutputKind::InputAlias &&
                             (base == graph::kNoValue || recorded.values[base].node == graph::kNoNode);
    if (!is_of_input && base != graph::kNoValue) views_of[base].push_back(relations.views.size());
    relations.views.push_back({.result = i,
                               .made = *recording.view_made[i],
                               .input = is_of_input && may_share_memory ? output.alias : -1});
  }
  for (const auto& [base, places] : views_of) {
    const auto is_base = [&](size_t output) { return recorded.outputs[output].value == base; };
    const auto seen = std::ranges::find_if(output_of, is_base);
    if (seen == output_of.end() && places.size() == 1 &&
        !shares_memory(recording.graph, output_of[relations.views[places[0]].result]))
      continue;
    if (seen == output_of.end()) relations.hidden_bases.push_back(recorded.meta(base));
    for (const size_t place : places) {
      Relations::View& view = relations.views[place];
      const graph::Output& output = recording.graph.outputs[output_of[view.result]];
      if (seen == output_of.end())
        view.hidden_base = static_cast<int32_t>(relations.hidden_bases.size()) - 1;
      else if (output.kind != graph::OutputKind::OutputAlias || output.alias != static_cast<int32_t>(*seen))
        view.base_result = static_cast<int32_t>(seen - output_of.begin());
    }
  }
  return relations;
}

at::Tensor view_like(const at::Tensor& base, const at::Tensor& tensor) {
  // Offsets count elements of the tensor's own type.
  const auto item = static_cast<int64_t>(tensor.itemsize()), own = static_cast<int64_t>(base.itemsize());
  return runtime::alias_of(base, {tensor.scalar_type(), tensor.sizes().vec(), tensor.strides().vec(),
                                  tensor.storage_offset() - base.storage_offset() * own / item});
}

std::unique_ptr<CompiledGraph> relate(std::unique_ptr<CompiledGraph> compiled, Relations relations) {
  if (relations.empty()) return compiled;
  return std::make_unique<RelatedResults>(std::move(compiled), std::move(relations));
}

}  // namespace oxy::autograd
