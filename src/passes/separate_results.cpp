#include "passes/separate_results.h"

#include <unordered_set>

#include "base/error.h"
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

std::vector<bool> outputs_with_own_memory(const Graph& graph) {
  std::vector<ValueId> owner = memory_owners(graph);
  std::vector<bool> own;
  for (const graph::Output& output : graph.outputs)
    own.push_back(output.kind == graph::OutputKind::Value &&
                  owner[static_cast<size_t>(output.value)] == output.value);
  return own;
}

Graph separate_results(const Graph& source, const std::vector<bool>& had_own_memory) {
  Graph out = source;
  std::vector<ValueId> owner = memory_owners(source);
  auto owner_of = [&](ValueId id) { return owner[static_cast<size_t>(id)]; };

  std::unordered_set<ValueId> taken(source.inputs.begin(), source.inputs.end());
  for (const graph::Constant& constant : source.constants) taken.insert(constant.value);
  std::vector<bool> is_shared(out.outputs.size());  // another output is a view of it
  for (const graph::Output& output : out.outputs)
    if (output.kind == graph::OutputKind::OutputAlias) is_shared[static_cast<size_t>(output.alias)] = true;
  // Those that others are views of keep the memory.
  for (const bool shared : {true, false})
    for (size_t i = 0; i < out.outputs.size(); ++i) {
      graph::Output& output = out.outputs[i];
      if (output.kind != graph::OutputKind::Value || is_shared[i] != shared) continue;
      const ValueId base = owner_of(output.value);
      const bool is_part = i < had_own_memory.size() && had_own_memory[i] &&
                           element_count(source.meta(base)) != element_count(source.meta(output.value));
      const bool is_taken = !taken.insert(base).second;
      if (!is_taken && !is_part) continue;
      if (is_taken && shared && base != output.value)
        throw Unsupported("results that share memory are parts of what other results are");
      output.value = graph::append_copy(out, output.value);
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
