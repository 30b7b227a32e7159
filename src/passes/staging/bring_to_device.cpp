#include "passes/staging/bring_to_device.h"

#include <algorithm>
#include <map>
#include <utility>

#include "aten/operators.h"
#include "ops/core/registry.h"
#include "passes/rewriting/rewrite.h"

namespace oxy::passes {

namespace {

// Of the node's results; the host if it has none.
Device device_of(const Graph& graph, const Node& node) {
  const auto result = std::ranges::find_if(node.outputs, [](ValueId id) { return id != graph::kNoValue; });
  return result == node.outputs.end() ? Device{} : graph.meta(*result).device;
}

bool may_be_in_a_kernel(const Graph& graph, const Node& node) {
  return !is_on_host(device_of(graph, node)) && node.op != op::to_copy() && ops::entry_of(*node.op).lower;
}

// Whether eager's kernel takes the operand from the host. Where it does not, eager raises.
bool is_taken(ops::HostOperands operands, const TensorMeta& meta, bool is_listed) {
  switch (operands) {
    case ops::HostOperands::None:
      return false;
    case ops::HostOperands::Numbers:
      return meta.rank() == 0;
    case ops::HostOperands::Indices:
      return is_listed || meta.rank() == 0;
    case ops::HostOperands::All:
      return true;
  }
  return false;
}

class Bringer {
 public:
  explicit Bringer(const Graph& source) : source_(source), rewriter_(source) {}

  Graph run() {
    for (const Node& original : source_.nodes) {
      Node node = rewriter_.renamed(original);
      if (may_be_in_a_kernel(source_, original)) bring_operands(node, device_of(source_, original));
      rewriter_.keep(std::move(node));
    }
    return rewriter_.finish();
  }

 private:
  void bring_operands(Node& node, Device device) {
    const ops::HostOperands operands = ops::traits_of(*node.op).host_operands;
    const auto bring = [&](ValueId& id, bool is_listed) {
      if (id == graph::kNoValue) return;
      const TensorMeta& meta = rewriter_.graph().meta(id);
      if (is_on_host(meta.device) && is_taken(operands, meta, is_listed))
        id = copy_on(device, id, node.location);
    };
    bool reads_host = false;
    graph::for_each_input(
        node, [&](ValueId id) { reads_host = reads_host || is_on_host(rewriter_.graph().meta(id).device); });
    if (!reads_host) return;
    for (Argument& argument : node.args.edit()) {
      if (auto* ref = std::get_if<ValueRef>(&argument)) bring(ref->id, false);
      if (auto* list = std::get_if<graph::ValueList>(&argument))
        for (ValueId& id : list->ids) bring(id, true);
    }
  }

  ValueId copy_on(Device device, ValueId id, graph::LocationId location) {
    const auto [found, is_new] = copies_.try_emplace({id, device.index});
    if (!is_new) return found->second;
    Graph& graph = rewriter_.graph();
    TensorMeta meta = graph.meta(id);
    meta.device = device;
    meta.storage_offset = 0;
    if (!is_non_overlapping_and_dense(meta)) meta.strides = contiguous_strides(meta.sizes);
    const graph::None none;
    const NodeId copy =
        graph.add_node(op::to_copy(), {ValueRef{id}, none, none, device, none, false, MemoryFormat::Preserve},
                       {meta}, location);
    found->second = graph.nodes[copy].outputs[0];
    return found->second;
  }

  const Graph& source_;
  Rewriter rewriter_;
  std::map<std::pair<ValueId, int8_t>, ValueId> copies_;  // by device, which are all of one kind
};

}  // namespace

bool has_several_devices(const Graph& graph) {
  const Device device = graph::main_device(graph);
  return std::ranges::any_of(graph.values.ids(),
                             [&](ValueId id) { return !(graph.meta(id).device == device); });
}

bool takes_from_host(const Graph& graph, const Node& node, ValueId operand) {
  const bool is_listed = std::ranges::any_of(node.args, [&](const Argument& argument) {
    const auto* list = std::get_if<graph::ValueList>(&argument);
    return list != nullptr && std::ranges::find(list->ids, operand) != list->ids.end();
  });
  return is_taken(ops::traits_of(*node.op).host_operands, graph.meta(operand), is_listed);
}

Graph bring_to_device(const Graph& source) {
  return Bringer(source).run();
}

}  // namespace oxy::passes
