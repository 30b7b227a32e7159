#include "passes/rewriting/rewrite.h"

#include <algorithm>

#include "aten/opaque.h"
#include "aten/operators.h"
#include "base/error.h"
#include "ops/core/registry.h"

namespace oxy::passes {

Rewriter::Rewriter(const Graph& source) : source_(source), map_(source.values.size(), graph::kNoValue) {
  out_.values.reserve(source.values.size());
  out_.nodes.reserve(source.nodes.size());
  out_.locations = source.locations;
  for (ValueId id : source.inputs) set(id, out_.add_input(source.meta(id)));
  for (const graph::Constant& constant : source.constants)
    set(constant.value, out_.add_constant(source.meta(constant.value), constant.handle));
}

Node Rewriter::renamed(const Node& source_node) const {
  Node node = source_node;
  graph::for_each_input(node, [this](ValueId& id) {
    ValueId renamed = map(id);
    check(renamed != graph::kNoValue, "a pass dropped a value that is still read");
    id = renamed;
  });
  return node;
}

void Rewriter::keep(const Node& renamed_node) {
  Node node = renamed_node;
  auto index = static_cast<int32_t>(out_.nodes.size());
  for (ValueId& id : node.outputs) {
    if (id == graph::kNoValue) continue;
    ValueId fresh = out_.add_value(source_.meta(id));
    out_.values[static_cast<size_t>(fresh)].node = index;
    set(id, fresh);
    id = fresh;
  }
  out_.nodes.push_back(std::move(node));
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
      const int32_t index =
          out_.add_node(op::as_strided(),
                        {ValueRef{whole}, window.sizes, window.strides, window.storage_offset}, {window}, -1);
      fresh = out_.nodes[static_cast<size_t>(index)].outputs.front();
    }
    out_.outputs.push_back({fresh, output.kind, output.alias});
  }
  for (const graph::Mutation& mutation : source_.mutations)
    out_.mutations.push_back({mutation.input, renamed(mutation.value), mutation.is_seen});
  return std::move(out_);
}

void append_with_needs(const Graph& source, const Node& node, Graph& graph, std::vector<ValueId>& map) {
  const auto mapped = [&](ValueId id) -> ValueId& { return map[static_cast<size_t>(id)]; };
  std::vector<const Node*> stack = {&node};
  while (!stack.empty()) {
    const Node& top = *stack.back();
    const size_t before = stack.size();
    graph::for_each_input(top, [&](ValueId id) {
      if (mapped(id) != graph::kNoValue) return;
      const Node* needed = producer(source, id);
      check(needed != nullptr, "a graph is made of values that are not there");
      stack.push_back(needed);
    });
    if (stack.size() != before) continue;
    stack.pop_back();
    const auto is_there = [&](ValueId id) { return id == graph::kNoValue || mapped(id) != graph::kNoValue; };
    if (!top.outputs.empty() && std::ranges::all_of(top.outputs, is_there)) continue;
    Node copy = top;
    graph::for_each_input(copy, [&](ValueId& id) { id = mapped(id); });
    const auto index = static_cast<int32_t>(graph.nodes.size());
    for (ValueId& id : copy.outputs) {
      if (id == graph::kNoValue) continue;
      const ValueId fresh = graph.add_value(source.meta(id));
      graph.values.back().node = index;
      // What was there stays, beside a result that was not.
      if (mapped(id) == graph::kNoValue) mapped(id) = fresh;
      id = fresh;
    }
    graph.nodes.push_back(std::move(copy));
  }
}

ValueId Site::emit(const OperatorSchema* op, std::vector<Argument> args, TensorMeta meta) const {
  std::vector<TensorMeta> outputs;
  outputs.push_back(std::move(meta));
  int32_t index = graph.add_node(op, std::move(args), std::move(outputs), node.location);
  return graph.nodes[static_cast<size_t>(index)].outputs.front();
}

Graph rewrite(const Graph& source, const Rule& rule) {
  Rewriter rewriter(source);
  for (const Node& node : source.nodes) {
    Node renamed = rewriter.renamed(node);
    auto replaced = rule(Site{rewriter.graph(), source, renamed, node});
    if (!replaced) {
      rewriter.keep(renamed);
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
  int32_t index = graph.values.at(static_cast<size_t>(value)).node;
  return index < 0 ? nullptr : &graph.nodes[static_cast<size_t>(index)];
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

std::vector<int32_t> use_counts(const Graph& graph) {
  std::vector<int32_t> counts(graph.values.size(), 0);
  for (const Node& node : graph.nodes)
    graph::for_each_input(node, [&](ValueId id) { ++counts[static_cast<size_t>(id)]; });
  for (const graph::Output& output : graph.outputs) ++counts[static_cast<size_t>(output.value)];
  for (const graph::Mutation& mutation : graph.mutations) ++counts[static_cast<size_t>(mutation.value)];
  return counts;
}

std::vector<int32_t> only_readers(const Graph& graph) {
  std::vector<int32_t> readers(graph.values.size(), -1);
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    graph::for_each_input(graph.nodes[i],
                          [&](ValueId id) { readers[static_cast<size_t>(id)] = static_cast<int32_t>(i); });
  std::vector<int32_t> counts = use_counts(graph);
  for (size_t i = 0; i < readers.size(); ++i)
    if (counts[i] != 1) readers[i] = -1;
  return readers;
}

bool same_layout(const TensorMeta& a, const TensorMeta& b) {
  return a.dtype == b.dtype && a.device == b.device && a.sizes == b.sizes && a.strides == b.strides;
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
  return op.is_random || op.is_mutating() || is_opaque(op) || node.outputs.empty();
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
