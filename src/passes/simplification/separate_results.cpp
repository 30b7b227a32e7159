#include "passes/simplification/separate_results.h"

#include <unordered_set>

#include "aten/operators.h"
#include "base/error.h"
#include "passes/rewriting/rewrite.h"

namespace oxy::passes {
namespace {

// For each value, the value whose memory it shows.
IdVector<ValueId, ValueId> memory_owners(const Graph& graph) {
  IdVector<ValueId, ValueId> owner(graph.values.size());
  for (const ValueId id : owner.ids()) owner[id] = id;
  for (const Node& node : graph.nodes) {
    if (!is_view_like(*node.op) || node.args.empty()) continue;
    ValueId base = tensor_argument(node, 0);
    if (base == graph::kNoValue) continue;
    for (ValueId id : node.outputs)
      if (id != graph::kNoValue) owner[id] = owner[base];
  }
  return owner;
}

// A copy of what `value` is a part of, and the same part of that: with the strides and the place in its
// storage that it had.
ValueId append_part_of_copy(Graph& graph, ValueId whole, ValueId value) {
  const TensorMeta part = graph.meta(value), base = graph.meta(whole);
  const ValueId copy = graph::append_copy(graph, whole);
  TensorMeta meta = part;
  meta.storage_offset = graph::offset_between(base, part);
  const NodeId node = graph.add_node(
      op::as_strided(), {ValueRef{copy}, meta.sizes, meta.strides, Argument{meta.storage_offset}}, {meta});
  return graph.nodes[node].outputs[0];
}

}  // namespace

std::vector<bool> outputs_with_own_memory(const Graph& graph) {
  const IdVector<ValueId, ValueId> owner = memory_owners(graph);
  std::vector<bool> own;
  for (const graph::Output& output : graph.outputs)
    own.push_back(output.kind == graph::OutputKind::Value && owner[output.value] == output.value);
  return own;
}

Graph separate_results(const Graph& source, const std::vector<bool>& had_own_memory) {
  Graph out = source;
  const IdVector<ValueId, ValueId> owner = memory_owners(source);
  auto owner_of = [&](ValueId id) { return owner[id]; };

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
      const TensorMeta &whole = source.meta(base), &own = source.meta(output.value);
      const bool is_smaller = i < had_own_memory.size() && element_count(whole) != element_count(own);
      const bool is_part = is_smaller && had_own_memory[i];
      const bool is_taken = !taken.insert(base).second;
      if (!is_taken && !is_part) continue;
      if (is_taken && shared && base != output.value)
        throw Unsupported("results that share memory are parts of what other results are");
      const bool was_part =
          is_smaller && !had_own_memory[i] && whole.dtype == own.dtype && is_non_overlapping_and_dense(whole);
      output.value =
          was_part ? append_part_of_copy(out, base, output.value) : graph::append_copy(out, output.value);
    }

  // What an input held before it holds afterwards: nothing is written, but autograd may count it.
  const auto changes_nothing = [&](const graph::Mutation& mutation) {
    return mutation.value == source.inputs.at(static_cast<size_t>(mutation.input));
  };
  std::erase_if(out.mutations, [&](const graph::Mutation& mutation) {
    return changes_nothing(mutation) && !mutation.is_seen;
  });
  std::unordered_set<ValueId> mutated;
  for (const graph::Mutation& mutation : out.mutations)
    if (!changes_nothing(mutation)) mutated.insert(source.inputs.at(static_cast<size_t>(mutation.input)));
  for (graph::Mutation& mutation : out.mutations)
    if (!changes_nothing(mutation) && mutated.contains(owner_of(mutation.value)))
      mutation.value = graph::append_copy(out, mutation.value);
  return out;
}

}  // namespace oxy::passes
