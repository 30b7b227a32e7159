#include "passes/backward_parts.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "passes/absent_gradients.h"
#include "passes/rewrite.h"

namespace oxy::passes {
namespace {

using graph::kNoValue;
using graph::Output;
using graph::OutputKind;

size_t at(ValueId id) {
  return static_cast<size_t>(id);
}

// The graph without the inputs that nothing reads, but for those for which `is_kept`. `inputs`: the numbers
// of those that are left. An output that is an input is passed on as that.
Graph without_unread_inputs(const Graph& source, const std::vector<bool>& is_kept,
                            std::vector<size_t>& inputs) {
  const std::vector<int32_t> uses = use_counts(source);
  Graph result;
  result.locations = source.locations;
  std::vector<ValueId> map(source.values.size(), kNoValue);
  std::map<size_t, int32_t> new_input;
  for (size_t i = 0; i < source.inputs.size(); ++i) {
    const ValueId id = source.inputs[i];
    if (uses[at(id)] == 0 && !is_kept[i]) continue;
    new_input.emplace(i, static_cast<int32_t>(inputs.size()));
    inputs.push_back(i);
    map[at(id)] = result.add_input(source.meta(id));
  }
  for (const graph::Constant& constant : source.constants)
    map[at(constant.value)] = result.add_constant(source.meta(constant.value), constant.handle);
  for (const Node& node : source.nodes) append_with_needs(source, node, result, map);
  for (const Output& output : source.outputs) {
    const auto passed_on = std::ranges::find(source.inputs, output.value);
    const ValueId value = map[at(output.value)];
    if (passed_on == source.inputs.end())
      result.outputs.push_back({value});
    else
      result.outputs.push_back({value, OutputKind::InputAlias,
                                new_input.at(static_cast<size_t>(passed_on - source.inputs.begin()))});
  }
  return result;
}

bool is_of(const BackwardRoles& roles, size_t tangent, int32_t part) {
  return roles.part_of_tangent[tangent] == part;
}

bool flows_from(const BackwardRoles& roles, const BackwardRoles::Gradient& gradient, int32_t part) {
  for (size_t t = 0; t < roles.part_of_tangent.size(); ++t)
    if (is_of(roles, t, part) && gradient.tangents[t]) return true;
  return false;
}

// Where what has come to a result in all goes on, puts a new input instead: a gradient that does not come in.
void cut(Graph& graph, ValueId total) {
  const ValueId end = graph.add_input(graph.meta(total));
  for (Node& node : graph.nodes)
    graph::for_each_input(node, [&](ValueId& id) {
      if (id == total) id = end;
    });
  for (Output& output : graph.outputs)
    if (output.value == total) output = {end};
}

BackwardPart part(const Graph& whole, const BackwardRoles& roles, int32_t number) {
  Graph own = whole;
  for (const BackwardRoles::Gradient& gradient : roles.gradients) {
    if (gradient.result < 0 || is_of(roles, static_cast<size_t>(gradient.result), number)) continue;
    const Output total = whole.outputs.at(static_cast<size_t>(gradient.output));
    // It is an input if nothing is added to what comes from outside.
    if (total.kind == OutputKind::InputAlias) continue;
    cut(own, total.value);
    own.outputs[static_cast<size_t>(gradient.output)] = total;
  }
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
    if (is_new) wanted.push_back(own.outputs.at(static_cast<size_t>(gradient.output)));
    result.gradients.push_back(it->second);
  }
  own.outputs = std::move(wanted);
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

std::vector<BackwardPart> backward_parts(const Graph& whole, const BackwardRoles& roles) {
  std::vector<BackwardPart> parts;
  std::set<int32_t> left(roles.part_of_tangent.begin(), roles.part_of_tangent.end());
  while (!left.empty()) {
    const auto is_next = [&](int32_t number) {
      return std::ranges::none_of(roles.gradients, [&](const BackwardRoles::Gradient& gradient) {
        if (gradient.result < 0 || !flows_from(roles, gradient, number)) return false;
        const int32_t other = roles.part_of_tangent[static_cast<size_t>(gradient.result)];
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
