#include "passes/training/backward_parts.h"

#include <algorithm>
#include <map>
#include <ranges>
#include <set>
#include <utility>

#include "aten/operators.h"
#include "base/error.h"
#include "passes/rewriting/rewrite.h"
#include "passes/training/absent_gradients.h"

namespace oxy::passes {
namespace {

using graph::kNoValue;
using graph::Output;
using graph::OutputKind;

// The graph without the inputs that nothing reads, but for those for which `is_kept`. `inputs`: the numbers
// of those that are left. An output that is a kept input is passed on as that; another one is a copy.
Graph without_unread_inputs(const Graph& source, const std::vector<bool>& is_kept,
                            std::vector<size_t>& inputs) {
  const auto uses = use_counts(source);
  Graph result;
  result.locations = source.locations;
  IdVector<ValueId, ValueId> map(source.values.size(), kNoValue);
  std::map<size_t, int32_t> new_input;
  for (size_t i = 0; i < source.inputs.size(); ++i) {
    const ValueId id = source.inputs[i];
    if (uses[id] == 0 && !is_kept[i]) continue;
    new_input.emplace(i, static_cast<int32_t>(inputs.size()));
    inputs.push_back(i);
    map[id] = result.add_input(source.values[id].meta);
  }
  for (const graph::Constant& constant : source.constants)
    map[constant.value] = result.add_constant(source.values[constant.value].meta, constant.handle);
  for (const Node& node : source.nodes) append_with_needs(source, node, result, map);
  for (const Output& output : source.outputs) {
    const auto passed_on = std::ranges::find(source.inputs, output.value);
    const ValueId value = map[output.value];
    const auto input = static_cast<size_t>(passed_on - source.inputs.begin());
    if (passed_on == source.inputs.end() || !is_kept[input])
      result.outputs.push_back({value});
    else
      result.outputs.push_back({value, OutputKind::InputAlias, new_input.at(input)});
  }
  return result;
}

bool is_of(const BackwardRoles& roles, size_t tangent, PartId part) {
  return roles.part_of_tangent[tangent] == part;
}

// Whether it holds what has come in all to a result of another part (op::total).
bool is_total_of_other(const Node& node, const BackwardRoles& roles, PartId number) {
  return node.op == op::total() && !is_of(roles, static_cast<size_t>(*integer_argument(node, 1)), number);
}

bool flows_from(const BackwardRoles& roles, const BackwardRoles::Gradient& gradient, PartId part) {
  for (size_t t = 0; t < roles.part_of_tangent.size(); ++t)
    if (is_of(roles, t, part) && gradient.tangents[t]) return true;
  return false;
}

// Whether one of these outputs needs a node, if what has come to results of other parts does not come in.
IdVector<NodeId, bool> needed_nodes(const Graph& whole, const BackwardRoles& roles, PartId number,
                                    const std::vector<Output>& outputs) {
  IdVector<NodeId, bool> needed(whole.nodes.size(), false);
  const auto need = [&](ValueId id) {
    if (const NodeId node = whole.values[id].node; node != graph::kNoNode) needed[node] = true;
  };
  for (const Output& output : outputs) need(output.value);
  for (const NodeId i : whole.nodes.ids() | std::views::reverse) {
    const Node& node = whole.nodes[i];
    if (needed[i] && !is_total_of_other(node, roles, number)) graph::for_each_input(node, need);
  }
  return needed;
}

// These outputs of the graph. Where what has come to a result of another part in all goes on, there is a new
// input instead: a gradient that does not come in.
Graph cut_at_totals(const Graph& whole, const BackwardRoles& roles, PartId number,
                    const std::vector<Output>& outputs) {
  const IdVector<NodeId, bool> needed = needed_nodes(whole, roles, number, outputs);
  Rewriter rewriter(whole);
  for (const NodeId i : whole.nodes.ids()) {
    if (!needed[i]) continue;
    const Node& node = whole.nodes[i];
    if (is_total_of_other(node, roles, number))
      rewriter.set(node.outputs[0], rewriter.graph().add_input(whole.values[node.outputs[0]].meta));
    else if (node.op == op::total())
      rewriter.set(node.outputs[0], rewriter.map(tensor_argument(node, 0)));
    else
      rewriter.keep(rewriter.renamed(node));
  }
  Graph own = std::move(rewriter.graph());
  for (Output output : outputs) {
    output.value = rewriter.map(output.value);
    own.outputs.push_back(output);
  }
  return own;
}

BackwardPart part(const Graph& whole, const BackwardRoles& roles, PartId number) {
  BackwardPart result;
  std::vector<Output> wanted;
  std::map<int32_t, int32_t> place;
  for (const BackwardRoles::Gradient& gradient : roles.gradients) {
    const bool is_own = gradient.result >= 0 && is_of(roles, static_cast<size_t>(gradient.result), number);
    if (gradient.output < 0 || is_own || !flows_from(roles, gradient, number)) {
      result.gradients.push_back(-1);
      continue;
    }
    const auto [it, is_new] = place.emplace(gradient.output, static_cast<int32_t>(wanted.size()));
    if (is_new) wanted.push_back(whole.outputs.at(static_cast<size_t>(gradient.output)));
    result.gradients.push_back(it->second);
  }
  Graph own = cut_at_totals(whole, roles, number, wanted);
  std::vector<bool> is_gradient(own.inputs.size(), true), is_own(own.inputs.size(), false),
      is_absent(own.inputs.size(), true);
  for (size_t i = 0; i < whole.inputs.size(); ++i) {
    is_gradient[i] = i >= roles.saved;
    is_own[i] = is_gradient[i] && is_of(roles, i - roles.saved, number);
    is_absent[i] = is_gradient[i] && !is_own[i];
  }
  own = without_gradients(own, is_gradient, is_absent);
  std::vector<size_t> inputs;
  result.graph = without_unread_inputs(own, is_own, inputs);
  for (const size_t input : inputs) {
    check(input < roles.saved || is_own[input], "a part of a backward pass reads the tangent of another one");
    if (input < roles.saved)
      result.saved.push_back(input);
    else
      result.tangents.push_back(input - roles.saved);
  }
  return result;
}

}  // namespace

Graph hold_totals_apart(const Graph& joint, const std::vector<Total>& totals) {
  std::map<ValueId, size_t> tangent_of;
  for (const auto& [output, tangent] : totals) tangent_of.emplace(joint.outputs.at(output).value, tangent);
  Rewriter rewriter(joint);
  std::map<ValueId, ValueId> itself;
  for (const Node& node : joint.nodes) {
    rewriter.keep(rewriter.renamed(node));
    for (const ValueId id : node.outputs) {
      const auto found = tangent_of.find(id);
      if (found == tangent_of.end()) continue;
      const ValueId value = rewriter.map(id);
      itself.emplace(id, value);
      const NodeId held =
          rewriter.graph().add_node(op::total(), {ValueRef{value}, Expr(static_cast<int64_t>(found->second))},
                                    {joint.meta(id)}, node.location);
      rewriter.set(id, rewriter.graph().nodes[held].outputs[0]);
    }
  }
  Graph result = rewriter.finish();
  for (const auto& [output, tangent] : totals)
    if (const auto value = itself.find(joint.outputs[output].value); value != itself.end())
      result.outputs[output] = {value->second};
  return result;
}

std::vector<BackwardPart> backward_parts(const Graph& whole, const BackwardRoles& roles) {
  std::vector<BackwardPart> parts;
  std::set<PartId> left(roles.part_of_tangent.begin(), roles.part_of_tangent.end());
  while (!left.empty()) {
    const auto is_next = [&](PartId number) {
      return std::ranges::none_of(roles.gradients, [&](const BackwardRoles::Gradient& gradient) {
        if (gradient.result < 0 || !flows_from(roles, gradient, number)) return false;
        const PartId other = roles.part_of_tangent[static_cast<size_t>(gradient.result)];
        return other != number && left.contains(other);
      });
    };
    const auto next = std::ranges::find_if(left, is_next);
    check(next != left.end(), "the parts of a backward pass wait for each other");
    parts.push_back(part(whole, roles, *next));
    left.erase(next);
  }
  return parts;
}

}  // namespace oxy::passes
