#include "passes/partition.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>

#include "aten/dtype.h"
#include "base/error.h"
#include "ops/registry.h"
#include "passes/dead_code.h"
#include "passes/maximum_flow.h"
#include "passes/rewrite.h"

namespace oxy::passes {
namespace {

using graph::kNoValue;
using graph::OutputKind;

// What a saved value costs besides its bytes: an output, an input and a tensor of its own.
constexpr int64_t kBytesOfATensor = 64;

size_t at(ValueId id) {
  return static_cast<size_t>(id);
}

bool is_recomputable(const Node& node) {
  return node.op->is_view() || (ops::is_cheap(*node.op) && !has_effect(node));
}

class Partitioner {
 public:
  Partitioner(const Graph& joint, const JointRoles& roles)
      : joint_(joint),
        roles_(roles),
        depends_(joint.values.size(), false),
        is_constant_(joint.values.size(), false) {
    for (const graph::Constant& constant : joint.constants) is_constant_[at(constant.value)] = true;
    for (size_t i = roles.forward_inputs; i < joint.inputs.size(); ++i) depends_[at(joint.inputs[i])] = true;
    for (const Node& node : joint.nodes) {
      const bool depends = depends_on_tangent(node);
      for (const ValueId id : node.outputs)
        if (id != kNoValue) depends_[at(id)] = depends;
    }
    for (size_t i = 0; i < roles.forward_outputs; ++i) check_forward(joint.outputs[i].value);
    for (const graph::Mutation& mutation : joint.mutations) check_forward(mutation.value);
  }

  Partition run() {
    choose_saved();
    build_backward();
    build_forward();
    return std::move(result_);
  }

 private:
  bool depends_on_tangent(const Node& node) const {
    bool depends = false;
    graph::for_each_input(node, [&](ValueId id) { depends = depends || depends_[at(id)]; });
    return depends;
  }

  void check_forward(ValueId value) const {
    if (depends_[at(value)]) throw Unsupported("a result of the forward pass depends on a gradient");
  }

  int64_t bytes(ValueId id) const {
    const TensorMeta& meta = joint_.meta(id);
    const Expr elements = element_count(meta);
    if (!elements.is_constant()) return FlowNetwork::kUnbounded / 2;
    return elements.constant() * static_cast<int64_t>(item_size(meta.dtype));
  }

  // Values that the caller keeps anyway: input number, or output number as -1 - number.
  std::map<ValueId, int32_t> kept_values() const {
    std::map<ValueId, int32_t> kept;
    for (size_t i = 0; i < roles_.forward_outputs; ++i)
      if (roles_.keeps_output[i] && joint_.outputs[i].kind == OutputKind::Value)
        kept.emplace(joint_.outputs[i].value, -1 - static_cast<int32_t>(i));
    std::vector<bool> written(joint_.inputs.size(), false);
    for (const graph::Mutation& mutation : joint_.mutations)
      written[static_cast<size_t>(mutation.input)] = true;
    for (size_t i = 0; i < roles_.forward_inputs; ++i)
      if (roles_.keeps_input[i] && !written[i]) kept.emplace(joint_.inputs[i], static_cast<int32_t>(i));
    return kept;
  }

  // About the multiplications, or the bytes moved, of computing the node once more.
  double work(const Node& node) const {
    double result = 0;
    for (const ValueId id : node.outputs)
      if (id != kNoValue) result += static_cast<double>(bytes(id));
    std::vector<double> arguments = {0, 0};
    graph::for_each_input(node, [&](ValueId id) { arguments.push_back(static_cast<double>(bytes(id))); });
    std::ranges::sort(arguments, std::greater());
    const ops::OperatorEntry* entry = ops::find(node.op->name);
    const bool is_product = (!entry || !entry->lower) && arguments[1] > 0;
    if (!is_product) return result + arguments[0];
    // m * n and n * k elements come in, m * k go out: m * n * k multiplications.
    return std::sqrt(arguments[0] / 4 * arguments[1] / 4 * result / 4);
  }

  int64_t extra_bytes(const std::vector<ValueId>& saved, const std::map<ValueId, int32_t>& kept) const {
    int64_t total = 0;
    for (const ValueId id : saved)
      if (!kept.contains(id)) total += bytes(id);
    return total;
  }

  // The price of work falls until the budget is met.
  std::vector<ValueId> saved_values(const std::map<ValueId, int32_t>& kept) const {
    std::vector<ValueId> saved = cut(kept, std::nullopt);
    if (roles_.memory_budget >= 1) return saved;
    const auto most =
        static_cast<int64_t>(roles_.memory_budget * static_cast<double>(extra_bytes(saved, kept)));
    double low = 0, high = 1024;  // bytes for an instruction
    saved = cut(kept, low);
    for (int step = 0; step < 14; ++step) {
      const double price = low > 0 ? std::sqrt(low * high) : high / 1024 / 1024;
      std::vector<ValueId> tried = cut(kept, price);
      if (extra_bytes(tried, kept) <= most) {
        saved = std::move(tried);
        low = price;
      } else {
        high = price;
      }
    }
    return saved;
  }

  void choose_saved() {
    const std::map<ValueId, int32_t> kept = kept_values();
    for (const ValueId id : saved_values(kept)) {
      SavedValue saved;
      if (const auto it = kept.find(id); it != kept.end()) {
        saved = it->second >= 0 ? SavedValue{SavedValue::Kind::Input, it->second}
                                : SavedValue{SavedValue::Kind::Output, -1 - it->second};
      } else {
        if (!is_non_overlapping_and_dense(joint_.meta(id)))
          throw Unsupported("an argument whose elements share memory is written to and needed for gradients");
        saved = {SavedValue::Kind::Extra, static_cast<int32_t>(extra_.size())};
        extra_.push_back(id);
      }
      result_.saved.push_back(saved);
      saved_.push_back(id);
    }
  }

  // The values to save. `price`: of an instruction of what is_recomputable() leaves out; none: it is always
  // saved.
  std::vector<ValueId> cut(const std::map<ValueId, int32_t>& kept, std::optional<double> price) const {
    const auto count = static_cast<int32_t>(joint_.values.size());
    const int32_t source = 2 * count, sink = source + 1;
    const auto entrance = [](ValueId id) { return 2 * id; };
    const auto exit = [](ValueId id) { return 2 * id + 1; };
    FlowNetwork network(sink + 1);
    const auto can_be_saved_at = [&](ValueId id, bool is_view) {
      const int64_t cost = bytes(id) + kBytesOfATensor;
      network.add_edge(entrance(id), exit(id),
                       is_view ? FlowNetwork::kUnbounded : (kept.contains(id) ? (cost + 1) / 2 : cost));
    };
    for (size_t i = 0; i < roles_.forward_inputs; ++i) {
      network.add_edge(source, entrance(joint_.inputs[i]), FlowNetwork::kUnbounded);
      can_be_saved_at(joint_.inputs[i], false);
    }
    for (const Node& node : joint_.nodes) {
      if (depends_on_tangent(node)) {
        graph::for_each_input(node, [&](ValueId id) {
          if (!depends_[at(id)] && !is_constant_[at(id)])
            network.add_edge(exit(id), sink, FlowNetwork::kUnbounded);
        });
        continue;
      }
      const bool recomputable = is_recomputable(node);
      for (const ValueId id : node.outputs) {
        if (id == kNoValue) continue;
        can_be_saved_at(id, node.op->is_view());
        if (!recomputable && (!price || has_effect(node))) {
          network.add_edge(source, entrance(id), FlowNetwork::kUnbounded);
          continue;
        }
        if (!recomputable) network.add_edge(source, entrance(id), static_cast<int64_t>(*price * work(node)));
        graph::for_each_input(node, [&](ValueId argument) {
          if (!is_constant_[at(argument)])
            network.add_edge(exit(argument), entrance(id), FlowNetwork::kUnbounded);
        });
      }
    }
    for (size_t i = roles_.forward_outputs; i < joint_.outputs.size(); ++i) {
      const ValueId id = joint_.outputs[i].value;
      if (!depends_[at(id)] && !is_constant_[at(id)])
        network.add_edge(exit(id), sink, FlowNetwork::kUnbounded);
    }
    const std::vector<bool> late = network.minimum_cut(source, sink);
    std::vector<ValueId> saved;
    for (ValueId id = 0; id < count; ++id)
      if (!late[static_cast<size_t>(entrance(id))] && late[static_cast<size_t>(exit(id))] &&
          !depends_[at(id)] && !is_constant_[at(id)])
        saved.push_back(id);
    return saved;
  }

  void build_backward() {
    Graph& graph = result_.backward;
    graph.locations = joint_.locations;
    std::vector<ValueId> map(joint_.values.size(), kNoValue);
    for (const ValueId id : saved_) {
      TensorMeta meta = joint_.meta(id);
      if (joint_.values[at(id)].node >= 0) meta.storage_offset = 0;
      map[at(id)] = graph.add_input(std::move(meta));
    }
    for (size_t i = roles_.forward_inputs; i < joint_.inputs.size(); ++i)
      map[at(joint_.inputs[i])] = graph.add_input(joint_.meta(joint_.inputs[i]));
    for (const graph::Constant& constant : joint_.constants)
      map[at(constant.value)] = graph.add_constant(joint_.meta(constant.value), constant.handle);
    // Gradients in the order in which they were recorded; what is computed again, right before its first use.
    for (const Node& node : joint_.nodes)
      if (depends_on_tangent(node)) emit(node, graph, map);
    std::map<ValueId, int32_t> output_of;
    for (size_t i = roles_.forward_outputs; i < joint_.outputs.size(); ++i) {
      const ValueId id = joint_.outputs[i].value;
      if (map[at(id)] == kNoValue) emit(joint_.nodes[at(joint_.values[at(id)].node)], graph, map);
      const auto [it, is_new] = output_of.emplace(map[at(id)], static_cast<int32_t>(graph.outputs.size()));
      if (is_new) {
        graph::Output output{.value = it->first};
        for (size_t t = saved_.size(); t < graph.inputs.size(); ++t)
          if (graph.inputs[t] == output.value)
            output = {output.value, OutputKind::InputAlias, static_cast<int32_t>(t)};
        graph.outputs.push_back(output);
      }
      result_.gradients.push_back(it->second);
    }
    graph = remove_dead_code(graph);
  }

  // Adds `node` to `graph`, after whatever it reads that is not there yet.
  void emit(const Node& node, Graph& graph, std::vector<ValueId>& map) const {
    std::vector<const Node*> stack = {&node};
    while (!stack.empty()) {
      const Node& top = *stack.back();
      const size_t before = stack.size();
      graph::for_each_input(top, [&](ValueId id) {
        if (map[at(id)] != kNoValue) return;
        const int32_t producer = joint_.values[at(id)].node;
        check(producer >= 0, "the backward graph reads an input that was not saved");
        stack.push_back(&joint_.nodes[static_cast<size_t>(producer)]);
      });
      if (stack.size() != before) continue;
      stack.pop_back();
      const auto is_there = [&](ValueId id) { return id == kNoValue || map[at(id)] != kNoValue; };
      if (!top.outputs.empty() && std::all_of(top.outputs.begin(), top.outputs.end(), is_there)) continue;
      Node copy = top;
      graph::for_each_input(copy, [&](ValueId& id) { id = map[at(id)]; });
      const auto index = static_cast<int32_t>(graph.nodes.size());
      for (ValueId& id : copy.outputs) {
        if (id == kNoValue) continue;
        const ValueId fresh = graph.add_value(joint_.meta(id));
        graph.values.back().node = index;
        // A saved output of a node that is needed for another one stays saved.
        if (map[at(id)] == kNoValue) map[at(id)] = fresh;
        id = fresh;
      }
      graph.nodes.push_back(std::move(copy));
    }
  }

  void build_forward() {
    Graph graph;
    graph.locations = joint_.locations;
    std::vector<ValueId> map(joint_.values.size(), kNoValue);
    for (size_t i = 0; i < roles_.forward_inputs; ++i)
      map[at(joint_.inputs[i])] = graph.add_input(joint_.meta(joint_.inputs[i]));
    for (const graph::Constant& constant : joint_.constants)
      map[at(constant.value)] = graph.add_constant(joint_.meta(constant.value), constant.handle);
    for (const Node& node : joint_.nodes)
      if (!depends_on_tangent(node)) emit(node, graph, map);
    for (size_t i = 0; i < roles_.forward_outputs; ++i) {
      graph::Output output = joint_.outputs[i];
      output.value = map[at(output.value)];
      graph.outputs.push_back(output);
    }
    for (const ValueId id : extra_) graph.outputs.push_back({.value = map[at(id)]});
    for (const graph::Mutation& mutation : joint_.mutations)
      graph.mutations.push_back({mutation.input, map[at(mutation.value)]});
    result_.forward = remove_dead_code(graph);
  }

  const Graph& joint_;
  const JointRoles& roles_;
  std::vector<bool> depends_;
  std::vector<bool> is_constant_;
  std::vector<ValueId> saved_;  // of the joint graph, in the order of Partition::saved
  std::vector<ValueId> extra_;
  Partition result_;
};

}  // namespace

Partition partition(const Graph& joint, const JointRoles& roles) {
  return Partitioner(joint, roles).run();
}

}  // namespace oxy::passes
