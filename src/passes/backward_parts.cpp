#include "passes/backward_parts.h"

#include <algorithm>
#include <map>
#include <set>

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
// of those that are left.
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
  for (Output output : source.outputs) {
    output.value = map[at(output.value)];
    if (output.kind == OutputKind::InputAlias) output.alias = new_input.at(static_cast<size_t>(output.alias));
    result.outputs.push_back(output);
  }
  return result;
}

BackwardPart part(const Graph& whole, const BackwardRoles& roles, int32_t number) {
  const size_t tangents = roles.part_of_tangent.size();
  std::vector<bool> is_tangent(whole.inputs.size(), false), is_own(whole.inputs.size(), false),
      is_absent(whole.inputs.size(), false);
  for (size_t t = 0; t < tangents; ++t) {
    is_tangent[roles.saved + t] = true;
    is_own[roles.saved + t] = roles.part_of_tangent[t] == number;
    is_absent[roles.saved + t] = !is_own[roles.saved + t];
  }
  BackwardPart result;
  std::vector<int32_t> wanted;
  for (size_t g = 0; g < roles.gradients.size(); ++g) {
    bool flows = false;
    for (size_t t = 0; t < tangents; ++t)
      flows = flows || (roles.gradients[g] >= 0 && is_own[roles.saved + t] && roles.flows[g][t]);
    if (!flows) {
      result.gradients.push_back(-1);
      continue;
    }
    auto place = std::find(wanted.begin(), wanted.end(), roles.gradients[g]);
    if (place == wanted.end()) place = wanted.insert(place, roles.gradients[g]);
    result.gradients.push_back(static_cast<int32_t>(place - wanted.begin()));
  }
  Graph own = whole;
  own.outputs.clear();
  for (const int32_t output : wanted) own.outputs.push_back(whole.outputs.at(static_cast<size_t>(output)));
  own = without_gradients(own, is_tangent, is_absent);
  std::vector<size_t> inputs;
  result.graph = without_unread_inputs(own, is_own, inputs);
  for (const size_t input : inputs) {
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
  std::set<int32_t> done;
  for (const int32_t number : roles.part_of_tangent)
    if (done.insert(number).second) parts.push_back(part(whole, roles, number));
  return parts;
}

}  // namespace oxy::passes
