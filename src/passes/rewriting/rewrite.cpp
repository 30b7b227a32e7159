#include "passes/rewriting/rewrite.h"

#include <algorithm>
#include <utility>

#include "aten/opaque.h"
#include "aten/operators.h"
#include "base/error.h"
#include "ops/core/registry.h"

namespace oxy::passes {

Rewriter::Rewriter(const Graph& source) : source_(source), map_(source.values.size()) {
  out_.values.reserve(source.values.size());
  out_.nodes.reserve(source.nodes.size());
  out_.locations = source.locations;
  for (ValueId id : source.inputs) set(id, out_.add_input(source.values[id].meta));
  for (const graph::Constant& constant : source.constants)
    set(constant.value, out_.add_constant(source.values[constant.value].meta, constant.handle));
}

Node Rewriter::renamed(const Node& source_node) const {
  Node node = source_node;
  graph::rename_inputs(node, [this](ValueId id) {
    const ValueId renamed = map(id);
    check(renamed != graph::kNoValue, "a pass dropped a value that is still read");
    return renamed;
  });
  return node;
}

void Rewriter::keep(Node renamed_node) {
  for (size_t i = 0; i < renamed_node.outputs.size(); ++i) {
    const ValueId id = renamed_node.outputs[i];
    if (id == graph::kNoValue) continue;
    const ValueId fresh = out_.add_value(source_.values[id].meta);
    out_.values[fresh].node = out_.nodes.next_id();
    set(id, fresh);
    if (fresh != id) renamed_node.outputs.edit()[i] = fresh;
  }
  out_.nodes.add(std::move(renamed_node));
}

Graph Rewriter::finish() {
  auto renamed = [this](ValueId id) {
    ValueId fresh = map(id);
    check(fresh != graph::kNoValue, "a pass dropped a result of the graph");
    return fresh;
  };
  // The metadata of an alias says which part of the other tensor it is: a value of the same contents but
  // another layout cannot stand for it.
  auto same_window = [this](ValueId old, ValueId fresh) {
    const TensorMeta &a = source_.meta(old), &b = out_.meta(fresh);
    return a.sizes == b.sizes && a.strides == b.strides && a.storage_offset == b.storage_offset;
  };
  for (const graph::Output& output : source_.outputs) {
    ValueId fresh = renamed(output.value);
    if (output.kind != graph::OutputKind::Value && !same_window(output.value, fresh)) {
      const TensorMeta& window = source_.meta(output.value);
      const auto alias = static_cast<size_t>(output.alias);
      const ValueId whole =
          output.kind == graph::OutputKind::InputAlias ? out_.inputs.at(alias) : out_.outputs.at(alias).value;
      const NodeId index = out_.add_node(
          op::as_strided(), {ValueRef{whole}, window.sizes, window.strides, window.storage_offset}, {window});
      fresh = out_.nodes[index].outputs.front();
    }
    out_.outputs.push_back({fresh, output.kind, output.alias});
  }
  for (const graph::Mutation& mutation : source_.mutations)
    out_.mutations.push_back({mutation.input, renamed(mutation.value), mutation.is_seen});
  return std::move(out_);
}

std::vector<ValueId> keep_without(const Site& site, size_t result) {
  Node node = site.node;
  auto& mask = std::get<std::vector<bool>>(node.args.edit().back());
  mask.at(result) = false;
  std::vector<ValueId>& ids = node.outputs.edit();
  for (size_t i = 0; i < mask.size(); ++i) {
    ValueId& id = ids.at(i);
    if (id == graph::kNoValue) continue;
    id = mask[i] ? site.graph.add_value(site.meta(i)) : graph::kNoValue;
    if (mask[i]) site.graph.values[id].node = site.graph.nodes.next_id();
  }
  std::vector<ValueId> outputs = ids;
  if (std::ranges::count(mask, true) > 0) site.graph.nodes.add(std::move(node));
  return outputs;
}

void append_with_needs(const Graph& source, const Node& node, Graph& graph, IdVector<ValueId, ValueId>& map) {
  std::vector<const Node*> stack = {&node};
  while (!stack.empty()) {
    const Node& top = *stack.back();
    const size_t before = stack.size();
    graph::for_each_input(top, [&](ValueId id) {
      if (map[id] != graph::kNoValue) return;
      const Node* needed = producer(source, id);
      check(needed != nullptr, "a graph is made of values that are not there");
      stack.push_back(needed);
    });
    if (stack.size() != before) continue;
    stack.pop_back();
    const auto is_there = [&](ValueId id) { return id == graph::kNoValue || map[id] != graph::kNoValue; };
    if (!top.outputs.empty() && std::ranges::all_of(top.outputs, is_there)) continue;
    Node copy = top;
    graph::rename_inputs(copy, [&](ValueId id) { return map[id]; });
    for (ValueId& id : copy.outputs.edit()) {
      if (id == graph::kNoValue) continue;
      const ValueId fresh = graph.add_value(source.values[id].meta);
      graph.values[fresh].node = graph.nodes.next_id();
      // What was there stays, beside a result that was not.
      if (map[id] == graph::kNoValue) map[id] = fresh;
      id = fresh;
    }
    graph.nodes.add(std::move(copy));
  }
}

ValueId Site::emit(const OperatorSchema* op, std::vector<Argument> args, TensorMeta meta) const {
  std::vector<TensorMeta> outputs;
  outputs.push_back(std::move(meta));
  NodeId index = graph.add_node(op, std::move(args), std::move(outputs), node.location);
  return graph.nodes[index].outputs.front();
}

ValueId transposed(const Site& site, ValueId matrix) {
  TensorMeta meta = site.graph.meta(matrix);
  check(meta.rank() == 2, "a tensor that is no matrix is transposed");
  std::swap(meta.sizes[0], meta.sizes[1]);
  std::swap(meta.strides[0], meta.strides[1]);
  return site.emit(op::permute(), {ValueRef{matrix}, std::vector<Expr>{1, 0}}, std::move(meta));
}

Graph rewrite(const Graph& source, const Rule& rule) {
  Rewriter rewriter(source);
  for (const Node& node : source.nodes) {
    Node renamed = rewriter.renamed(node);
    auto replaced = rule(Site{rewriter.graph(), source, renamed, node});
    if (!replaced) {
      rewriter.keep(std::move(renamed));
      continue;
    }
    check(replaced->size() == node.outputs.size(),
          "a rule replaced another number of outputs than the node has");
    for (size_t i = 0; i < node.outputs.size(); ++i)
      if (node.outputs[i] != graph::kNoValue) rewriter.set(node.outputs[i], (*replaced)[i]);
  }
  return rewriter.finish();
}

const Node* producer(const Graph& graph, ValueId value) {
  if (value == graph::kNoValue) return nullptr;
  const NodeId node = graph.values.at(value).node;
  return node == graph::kNoNode ? nullptr : &graph.nodes[node];
}

ValueId tensor_argument(const Node& node, size_t index) {
  const auto* ref = std::get_if<ValueRef>(&node.args.at(index));
  return ref == nullptr ? graph::kNoValue : ref->id;
}

std::optional<int64_t> integer_argument(const Node& node, size_t index) {
  const Argument& arg = node.args.at(index);
  if (const auto* flag = std::get_if<bool>(&arg)) return *flag ? 1 : 0;
  if (const auto* e = std::get_if<Expr>(&arg)) return e->as_constant();
  return std::nullopt;
}

std::optional<double> number_argument(const Node& node, size_t index) {
  if (const auto* real = std::get_if<double>(&node.args.at(index))) return *real;
  auto integer = integer_argument(node, index);
  if (!integer) return std::nullopt;
  return static_cast<double>(*integer);
}

IdVector<ValueId, int32_t> use_counts(const Graph& graph) {
  IdVector<ValueId, int32_t> counts(graph.values.size(), 0);
  for (const Node& node : graph.nodes) graph::for_each_input(node, [&](ValueId id) { ++counts[id]; });
  for (const graph::Output& output : graph.outputs) ++counts[output.value];
  for (const graph::Mutation& mutation : graph.mutations) ++counts[mutation.value];
  return counts;
}

IdVector<ValueId, NodeId> only_readers(const Graph& graph) {
  IdVector<ValueId, NodeId> readers(graph.values.size());
  for (const NodeId i : graph.nodes.ids())
    graph::for_each_input(graph.nodes[i], [&](ValueId id) { readers[id] = i; });
  const IdVector<ValueId, int32_t> counts = use_counts(graph);
  for (const ValueId id : readers.ids())
    if (counts[id] != 1) readers[id] = graph::kNoNode;
  return readers;
}

bool same_layout(const TensorMeta& a, const TensorMeta& b) {
  if (a.dtype != b.dtype || a.device != b.device || a.sizes != b.sizes) return false;
  if (a.strides == b.strides) return true;
  // Strides that differ where there are no elements alone, such as max(s, 1) and s, say nothing.
  TensorMeta a_copy, b_copy;
  return with_large_sizes(a, a_copy).strides == with_large_sizes(b, b_copy).strides;
}

bool same_memory_order(const TensorMeta& a, const TensorMeta& b) {
  if (a.dtype != b.dtype || a.device != b.device || a.sizes != b.sizes) return false;
  for (size_t d = 0; d < a.sizes.size(); ++d)
    if (a.sizes[d] != Expr(1) && a.strides[d] != b.strides[d]) return false;
  return true;
}

TensorMeta contiguous_meta(DType dtype, Device device, std::vector<Expr> sizes) {
  TensorMeta meta;
  meta.dtype = dtype;
  meta.device = device;
  meta.strides = contiguous_strides(sizes);
  meta.sizes = std::move(sizes);
  return meta;
}

bool has_effect(const Node& node) {
  const OperatorSchema& op = *node.op;
  return draws_numbers(op, node.args) || op.is_mutating() || is_opaque(op) || node.outputs.empty() ||
         !node.computed.empty();
}

bool is_view_like(const OperatorSchema& op) {
  return op.is_view() || ops::traits_of(op).shares_memory;
}

bool owned_by_graph(const Graph& graph, ValueId value) {
  const Node* node = producer(graph, value);
  while (node != nullptr && is_view_like(*node->op)) node = producer(graph, tensor_argument(*node, 0));
  return node != nullptr;
}

}  // namespace oxy::passes
