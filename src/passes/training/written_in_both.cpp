#include "passes/training/written_in_both.h"

#include <algorithm>
#include <limits>
#include <ranges>

#include "ops/core/registry.h"

namespace oxy::passes {
namespace {

using graph::kNoValue;
using graph::Node;
using graph::NodeId;
using graph::ValueId;

// How many operators outside of kernels lie on the longest way to a node.
using Depth = int32_t;

// Who reads a value, or a view of it.
struct Readers {
  Depth last_of_forward = -1;
  // Of the backward pass. What is computed again is computed where it is read first.
  Depth first_of_backward = std::numeric_limits<Depth>::max(), last_of_backward = -1;
  bool is_operand_of_backward = false;  // of an operator outside of kernels

  void add(const Readers& other) {
    last_of_forward = std::max(last_of_forward, other.last_of_forward);
    first_of_backward = std::min(first_of_backward, other.first_of_backward);
    last_of_backward = std::max(last_of_backward, other.last_of_backward);
    is_operand_of_backward = is_operand_of_backward || other.is_operand_of_backward;
  }
};

IdVector<NodeId, Depth> depths(const graph::Graph& graph) {
  IdVector<NodeId, Depth> result;
  IdVector<ValueId, Depth> of_value(graph.values.size(), 0);
  for (const Node& node : graph.nodes) {
    Depth depth = 0;
    graph::for_each_input(node, [&](ValueId id) { depth = std::max(depth, of_value[id]); });
    if (is_outside_of_kernels(node)) ++depth;
    for (const ValueId id : node.outputs)
      if (id != kNoValue) of_value[id] = depth;
    result.add(depth);
  }
  return result;
}

bool is_written_in_both(const Readers& readers, Depth made) {
  return readers.last_of_forward > made &&
         (readers.is_operand_of_backward || readers.first_of_backward < readers.last_of_backward);
}

}  // namespace

bool is_outside_of_kernels(const Node& node) {
  return !node.op->is_view() && !ops::entry_of(*node.op).lower;
}

IdVector<ValueId, bool> written_in_both(const graph::Graph& graph, const BackwardPass& pass,
                                        const IdVector<ValueId, bool>& is_joined,
                                        const std::function<bool(NodeId)>& may_recompute) {
  const IdVector<NodeId, Depth> depth = depths(graph);
  IdVector<ValueId, Readers> readers(graph.values.size());
  IdVector<ValueId, bool> result(graph.values.size(), false);
  for (const NodeId i : graph.nodes.ids() | std::views::reverse) {
    const Node& node = graph.nodes[i];
    Readers of_outputs;
    bool is_written = false, joins = false;
    for (const ValueId id : node.outputs) {
      if (id == kNoValue) continue;
      of_outputs.add(readers[id]);
      joins = joins || is_joined[id];
      result[id] = !is_joined[id] && is_written_in_both(readers[id], depth[i]);
      is_written = is_written || result[id];
    }
    Readers reader;
    if (node.op->is_view()) {
      reader = of_outputs;
    } else {
      const bool outside = is_outside_of_kernels(node);
      if (pass.is_forward[i]) reader.last_of_forward = depth[i];
      if (pass.is_late[i]) {
        reader.first_of_backward = reader.last_of_backward = depth[i];
        reader.is_operand_of_backward = outside;
      } else if (of_outputs.last_of_backward >= 0 && may_recompute(i) && !is_written && !joins) {
        reader.first_of_backward = reader.last_of_backward = of_outputs.first_of_backward;
      }
    }
    graph::for_each_input(node, [&](ValueId id) { readers[id].add(reader); });
  }
  return result;
}

}  // namespace oxy::passes
