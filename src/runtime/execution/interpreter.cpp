#include "runtime/execution/interpreter.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/stack.h>
#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "graph/sizes.h"
#include "runtime/values/convert.h"
#include "runtime/values/tensors.h"

namespace oxy::runtime {

namespace {

// For each node, the values that no later one reads, and that are no results.
IdVector<graph::NodeId, std::vector<graph::ValueId>> dead_after(const graph::Graph& graph) {
  IdVector<graph::ValueId, graph::NodeId> last(graph.values.size());  // that reads it; none for results
  for (const graph::NodeId n : graph.nodes.ids()) {
    for (const graph::ValueId id : graph.nodes[n].outputs)
      if (id != graph::kNoValue) last[id] = n;
    graph::for_each_input(graph.nodes[n], [&](graph::ValueId id) { last[id] = n; });
  }
  for (const graph::Output& output : graph.outputs) last[output.value] = graph::kNoNode;
  for (const graph::Mutation& mutation : graph.mutations) last[mutation.value] = graph::kNoNode;
  IdVector<graph::NodeId, std::vector<graph::ValueId>> result(graph.nodes.size());
  for (const graph::ValueId id : last.ids())
    if (last[id] != graph::kNoNode) result[last[id]].push_back(id);
  return result;
}

at::Tensor view_of_output(const at::Tensor& base, const TensorMeta& meta, const TensorMeta& base_meta,
                          SymbolValues symbols) {
  return alias_of(
      base, {dtype_to_torch(meta.dtype), numbers_of(meta.sizes, symbols), numbers_of(meta.strides, symbols),
             number_of(graph::offset_between(base_meta, meta), symbols)});
}

at::Tensor output_tensor(const graph::Graph& graph, const graph::Output& output,
                         std::span<const at::Tensor> inputs,
                         const IdVector<graph::ValueId, at::Tensor>& values,
                         const std::vector<at::Tensor>& outputs, SymbolValues symbols) {
  if (output.kind == graph::OutputKind::OutputAlias) {
    const at::Tensor& whole = outputs.at(static_cast<size_t>(output.alias));
    const TensorMeta& meta = graph.meta(output.value);
    const TensorMeta& whole_meta = graph.meta(graph.outputs[static_cast<size_t>(output.alias)].value);
    return view_of_output(whole, meta, whole_meta, symbols);
  }
  if (output.kind != graph::OutputKind::InputAlias) return values.at(output.value);
  const auto index = static_cast<size_t>(output.alias);
  return view_of_output(inputs[index], graph.meta(output.value), graph.meta(graph.inputs.at(index)), symbols);
}

}  // namespace

std::vector<c10::IValue> call_node(const graph::Node& node,
                                   const std::function<at::Tensor(graph::ValueId)>& tensor,
                                   SymbolValues symbols) {
  const c10::OperatorHandle op = handle_of(*node.op);
  check(node.args.size() == node.op->arguments.size(), "a node has the wrong number of arguments");
  torch::jit::Stack stack;
  stack.reserve(node.args.size());
  std::vector<graph::Argument> numbers;
  if (!symbols.empty())
    numbers = graph::map_expressions(node.args, [&](const Expr& e) { return Expr(number_of(e, symbols)); });
  const std::vector<graph::Argument>& arguments = symbols.empty() ? node.args.items() : numbers;
  for (size_t i = 0; i < arguments.size(); ++i)
    stack.push_back(ivalue_from_argument(arguments[i], node.op->arguments[i], tensor));
  op.callBoxed(stack);
  return stack;
}

std::vector<at::Tensor> run_node(const graph::Node& node,
                                 const std::function<at::Tensor(graph::ValueId)>& tensor,
                                 SymbolValues symbols) {
  const std::vector<c10::IValue> stack = call_node(node, tensor, symbols);
  std::vector<at::Tensor> results;
  results.reserve(node.outputs.size());
  for_each_returned_tensor(stack, stack.size(), [&](const at::Tensor& t) { results.push_back(t); });
  return results;
}

std::vector<at::Tensor> interpret(const graph::Graph& graph, std::span<const at::Tensor> inputs,
                                  std::span<const at::Tensor> constants, SymbolValues symbols) {
  check(inputs.size() == graph.inputs.size(), "a graph runs on as many tensors as it has inputs");
  const at::NoGradGuard no_grad;
  // The casts of autocast are nodes of the graph.
  const c10::impl::ExcludeDispatchKeyGuard without_autocast(c10::autocast_dispatch_keyset);
  IdVector<graph::ValueId, at::Tensor> values(graph.values.size());
  for (size_t i = 0; i < inputs.size(); ++i) values.at(graph.inputs[i]) = inputs[i].detach();
  for (const graph::Constant& constant : graph.constants) {
    // A copy: a node or whoever gets the outputs may write to it.
    values.at(constant.value) = constants[static_cast<size_t>(constant.handle)].clone();
  }
  const auto dead = dead_after(graph);
  const auto value = [&](graph::ValueId id) { return values.at(id); };
  for (const graph::NodeId n : graph.nodes.ids()) {
    const graph::Node& node = graph.nodes[n];
    const std::vector<at::Tensor> results = run_node(node, value, symbols);
    check(results.size() == node.outputs.size(),
          fmt::format("{} returned {} tensors, not {}", node.op->name, results.size(), node.outputs.size()));
    for (size_t i = 0; i < results.size(); ++i)
      if (node.outputs[i] != graph::kNoValue) values[node.outputs[i]] = results[i];
    for (const graph::ValueId id : dead[n]) values[id].reset();
  }
  for (const graph::Mutation& mutation : graph.mutations) {
    const at::Tensor& input = inputs[static_cast<size_t>(mutation.input)];
    (mutation.is_seen || input.is_inference() ? input.detach() : input.variable_data())
        .copy_(value(mutation.value));
  }
  std::vector<at::Tensor> outputs;
  outputs.reserve(graph.outputs.size());
  for (const graph::Output& output : graph.outputs)
    outputs.push_back(output_tensor(graph, output, inputs, values, outputs, symbols));
  return outputs;
}

}  // namespace oxy::runtime
