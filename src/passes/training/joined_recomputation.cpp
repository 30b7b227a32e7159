#include "passes/training/joined_recomputation.h"

#include <algorithm>
#include <iterator>
#include <ranges>
#include <set>

#include "passes/rewriting/rewrite.h"
#include "passes/training/many_bytes.h"
#include "passes/training/written_in_both.h"

namespace oxy::passes {
namespace {

using graph::kNoNode;
using graph::kNoValue;

// Who reads a value, or what follows from it there without being saved, in the backward pass. In program
// order.
struct LateReaders {
  std::vector<NodeId> in_kernels, outside;
};

// A value is often read on many ways through the graph. So each reader is kept once.
void merge(std::vector<NodeId>& readers, const std::vector<NodeId>& others) {
  if (others.empty()) return;
  std::vector<NodeId> merged;
  std::ranges::set_union(readers, others, std::back_inserter(merged));
  readers = std::move(merged);
}

// `is_repeated`: of a node that is not late, whether the backward pass repeats it where its results are read.
IdVector<ValueId, LateReaders> late_readers(const Graph& graph, const IdVector<NodeId, bool>& is_late,
                                            const std::function<bool(NodeId)>& is_repeated) {
  IdVector<ValueId, LateReaders> result(graph.values.size());
  for (const NodeId i : graph.nodes.ids() | std::views::reverse) {
    const Node& node = graph.nodes[i];
    LateReaders readers;
    if (node.op->is_view() || (!is_late[i] && is_repeated(i))) {
      for (const ValueId id : node.outputs) {
        if (id == kNoValue) continue;
        merge(readers.in_kernels, result[id].in_kernels);
        merge(readers.outside, result[id].outside);
      }
    } else if (is_late[i]) {
      (is_outside_of_kernels(node) ? readers.outside : readers.in_kernels).push_back(i);
    }
    graph::for_each_input(node, [&](ValueId id) {
      merge(result[id].in_kernels, readers.in_kernels);
      merge(result[id].outside, readers.outside);
    });
  }
  return result;
}

class Order {
 public:
  Order(const Graph& graph, const IdVector<NodeId, bool>& is_late, const IdVector<ValueId, bool>& is_saved)
      : graph_(graph), is_late_(is_late), is_saved_(is_saved) {}

  std::vector<NodeId> run() {
    IdVector<NodeId, std::vector<NodeId>> waiting(graph_.nodes.size());
    std::vector<NodeId> order;
    for (const NodeId i : graph_.nodes.ids()) {
      if (const NodeId first = kernel_to_wait_for(i); first != kNoNode)
        waiting[first].push_back(i);
      else
        order.push_back(i);
      // What waits for this one does not wait for anything else.
      order.insert(order.end(), waiting[i].begin(), waiting[i].end());
    }
    return order;
  }

 private:
  // kNoNode: it need not wait.
  NodeId kernel_to_wait_for(NodeId i) {
    const Node& node = graph_.nodes[i];
    NodeId last = kNoNode;
    if (!is_late_[i] || !is_outside_of_kernels(node) || has_effect(node)) return last;
    for (const ValueId id : saved_operands(node)) {
      const std::vector<NodeId>& readers = readers_of(id).in_kernels;
      const auto reader = std::ranges::upper_bound(readers, i);
      if (reader != readers.end() && (last == kNoNode || last < *reader)) last = *reader;
    }
    return last;
  }

  // What is saved, of which the backward pass computes again what the node reads.
  std::vector<ValueId> saved_operands(const Node& reader) const {
    std::vector<ValueId> result;
    std::set<ValueId> seen;
    std::vector<ValueId> stack;
    graph::for_each_input(reader, [&](ValueId id) {
      if (const NodeId made = maker(id); made != kNoNode) stack.push_back(id);
    });
    while (!stack.empty()) {
      const Node& node = graph_.nodes[maker(stack.back())];
      stack.pop_back();
      graph::for_each_input(node, [&](ValueId id) {
        if (!seen.insert(id).second) return;
        if (maker(id) != kNoNode)
          stack.push_back(id);
        else if (has_many_bytes(graph_.meta(id)))
          result.push_back(id);
      });
    }
    return result;
  }

  // They are found when the first is asked for: most graphs need none.
  const LateReaders& readers_of(ValueId id) {
    if (readers_.empty())
      readers_ = late_readers(graph_, is_late_, [this](NodeId i) {
        return std::ranges::none_of(graph_.nodes[i].outputs, [this](ValueId output) {
          return output != kNoValue && is_saved_[output];
        });
      });
    return readers_[id];
  }

  // The node that the backward pass repeats to have the value; kNoNode: it does not.
  NodeId maker(ValueId id) const {
    const NodeId made = graph_.values[id].node;
    return is_saved_[id] || made == kNoNode || is_late_[made] ? kNoNode : made;
  }

  const Graph& graph_;
  const IdVector<NodeId, bool>& is_late_;
  const IdVector<ValueId, bool>& is_saved_;
  IdVector<ValueId, LateReaders> readers_;
};

}  // namespace

IdVector<ValueId, bool> joined_recomputations(const Graph& graph, const BackwardPass& pass,
                                              const std::function<bool(NodeId)>& may_recompute) {
  IdVector<ValueId, bool> result(graph.values.size(), false);
  const auto has_many = [&](ValueId id) { return has_many_bytes(graph.meta(id)); };
  if (std::ranges::none_of(graph.values.ids(), has_many)) return result;
  const auto only_backward_reads = [&](NodeId i) { return !pass.is_forward[i] && may_recompute(i); };
  const IdVector<ValueId, LateReaders> readers = late_readers(graph, pass.is_late, only_backward_reads);
  // A kernel of the backward pass reads it, or what it is computed of.
  IdVector<ValueId, bool> is_at_hand(graph.values.size(), false);
  for (const graph::Constant& constant : graph.constants) is_at_hand[constant.value] = true;
  for (const ValueId id : graph.values.ids())
    if (!readers[id].in_kernels.empty() || !has_many(id)) is_at_hand[id] = true;
  for (const NodeId i : graph.nodes.ids()) {
    const Node& node = graph.nodes[i];
    if (pass.is_late[i] || (!node.op->is_view() && !may_recompute(i))) continue;
    bool are_operands_at_hand = true;
    graph::for_each_input(node,
                          [&](ValueId id) { are_operands_at_hand = are_operands_at_hand && is_at_hand[id]; });
    for (const ValueId id : node.outputs) {
      if (id == kNoValue) continue;
      if (node.op->is_view()) {
        is_at_hand[id] = are_operands_at_hand;
        continue;
      }
      result[id] = are_operands_at_hand && !readers[id].outside.empty() && has_many(id);
      is_at_hand[id] = !result[id] && (is_at_hand[id] || are_operands_at_hand);
    }
  }
  return result;
}

std::vector<NodeId> joined_order(const Graph& graph, const IdVector<NodeId, bool>& is_late,
                                 const IdVector<ValueId, bool>& is_saved) {
  return Order(graph, is_late, is_saved).run();
}

}  // namespace oxy::passes
