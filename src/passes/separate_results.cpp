#include "passes/separate_results.h"

#include <unordered_set>

#include "passes/operators.h"
#include "passes/rewrite.h"

namespace oxy::passes {
namespace {

// For each value, the value whose memory it shows.
std::vector<ValueId> memory_owners(const Graph& graph) {
  std::vector<ValueId> owner(graph.values.size());
  for (size_t i = 0; i < owner.size(); ++i) owner[i] = static_cast<ValueId>(i);
  for (const Node& node : graph.nodes) {
    if (!is_view_like(*node.op) || node.args.empty()) continue;
    ValueId base = tensor_argument(node, 0);
    if (base == graph::kNoValue) continue;
    for (ValueId id : node.outputs)
      if (id != graph::kNoValue) owner[static_cast<size_t>(id)] = owner[static_cast<size_t>(base)];
  }
  return owner;
}

}  // namespace

Graph separate_results(const Graph& source) {
  Graph out = source;
  std::vector<ValueId> owner = memory_owners(source);
  auto owner_of = [&](ValueId id) { return owner[static_cast<size_t>(id)]; };

  std::unordered_set<ValueId> taken(source.inputs.begin(), source.inputs.end());
  for (const graph::Constant& constant : source.constants) taken.insert(constant.value);
  for (graph::Output& output : out.outputs) {
    if (output.kind != graph::OutputKind::Value) continue;
    if (!taken.insert(owner_of(output.value)).second) output.value = graph::append_copy(out, output.value);
  }

  // What an input held before it holds afterwards.
  std::erase_if(out.mutations, [&](const graph::Mutation& mutation) {
    return mutation.value == source.inputs.at(static_cast<size_t>(mutation.input));
  });
  std::unordered_set<ValueId> mutated;
  for (const graph::Mutation& mutation : out.mutations)
    mutated.insert(source.inputs.at(static_cast<size_t>(mutation.input)));
  for (graph::Mutation& mutation : out.mutations)
    if (mutated.contains(owner_of(mutation.value))) mutation.value = graph::append_copy(out, mutation.value);
  return out;
}

}  // namespace oxy::passes
