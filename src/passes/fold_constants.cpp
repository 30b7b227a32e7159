#include "passes/fold_constants.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "passes/rewrite.h"

namespace oxy::passes {
namespace {

bool has_symbols(const TensorMeta& meta) {
  auto is_symbolic = [](const Expr& e) { return !e.is_constant(); };
  return std::any_of(meta.sizes.begin(), meta.sizes.end(), is_symbolic) ||
         std::any_of(meta.strides.begin(), meta.strides.end(), is_symbolic) ||
         is_symbolic(meta.storage_offset);
}

bool has_symbols(const Argument& arg) {
  if (const auto* e = std::get_if<Expr>(&arg)) return !e->is_constant();
  if (const auto* list = std::get_if<std::vector<Expr>>(&arg))
    return std::any_of(list->begin(), list->end(), [](const Expr& e) { return !e.is_constant(); });
  return false;
}

bool can_fold(const Graph& graph, const Node& node) {
  if (has_effect(node) || node.op->name.starts_with("aten::empty") ||
      node.op->name.starts_with("aten::new_empty"))
    return false;
  if (std::any_of(node.args.begin(), node.args.end(), [](const Argument& a) { return has_symbols(a); }))
    return false;
  return std::none_of(node.outputs.begin(), node.outputs.end(),
                      [&](ValueId id) { return id == graph::kNoValue || has_symbols(graph.meta(id)); });
}

// The memory that a value of its own would take; a view takes none.
int64_t stored_bytes(const Graph& graph, const Node& node, const TensorMeta& meta) {
  if (is_view_like(*node.op)) return 0;
  int64_t count = 1;
  for (size_t d = 0; d < meta.sizes.size(); ++d)
    if (meta.strides[d] != Expr(0)) count *= meta.sizes[d].constant();
  return count * static_cast<int64_t>(item_size(meta.dtype));
}

struct Analysis {
  std::vector<bool> is_constant;
  std::vector<int64_t> cost;  // bytes of the constants that a value is made of
};

Analysis analyse(const Graph& graph, int64_t growth_bytes) {
  Analysis a{std::vector<bool>(graph.values.size(), false), std::vector<int64_t>(graph.values.size(), 0)};
  for (const graph::Constant& constant : graph.constants) {
    const TensorMeta& meta = graph.meta(constant.value);
    if (has_symbols(meta)) continue;
    a.is_constant[static_cast<size_t>(constant.value)] = true;
    a.cost[static_cast<size_t>(constant.value)] =
        element_count(meta).constant() * static_cast<int64_t>(item_size(meta.dtype));
  }
  for (const Node& node : graph.nodes) {
    if (!can_fold(graph, node)) continue;
    bool all = true;
    int64_t sources = 0;
    graph::for_each_input(node, [&](ValueId id) {
      all = all && a.is_constant[static_cast<size_t>(id)];
      sources = std::min(sources + a.cost[static_cast<size_t>(id)], std::numeric_limits<int64_t>::max() / 4);
    });
    if (!all) continue;
    int64_t stored = 0;
    for (ValueId id : node.outputs) stored += stored_bytes(graph, node, graph.meta(id));
    if (stored > std::max(sources, growth_bytes)) continue;
    for (ValueId id : node.outputs) {
      a.is_constant[static_cast<size_t>(id)] = true;
      a.cost[static_cast<size_t>(id)] = std::max(sources, stored);
    }
  }
  return a;
}

}  // namespace

std::vector<bool> constant_values(const Graph& graph) {
  return analyse(graph, std::numeric_limits<int64_t>::max() / 4).is_constant;
}

Graph fold_constants(const Graph& source, const EvaluateConstants& evaluate, const FoldOptions& options) {
  std::vector<bool> is_constant = analyse(source, options.growth_bytes).is_constant;
  auto is_folded = [&](const Node& node) {
    return !node.outputs.empty() && node.outputs.front() != graph::kNoValue &&
           is_constant[static_cast<size_t>(node.outputs.front())];
  };

  // Values that the rest of the graph reads.
  std::vector<bool> is_needed(source.values.size(), false);
  auto need = [&](ValueId id) {
    if (is_constant[static_cast<size_t>(id)] && producer(source, id) != nullptr)
      is_needed[static_cast<size_t>(id)] = true;
  };
  for (const Node& node : source.nodes)
    if (!is_folded(node)) graph::for_each_input(node, need);
  for (const graph::Output& output : source.outputs) need(output.value);
  for (const graph::Mutation& mutation : source.mutations) need(mutation.value);

  Graph constant_part;
  std::vector<ValueId> inside(source.values.size(), graph::kNoValue);
  for (const graph::Constant& constant : source.constants)
    inside[static_cast<size_t>(constant.value)] =
        constant_part.add_constant(source.meta(constant.value), constant.handle);
  std::vector<ValueId> results;
  for (const Node& node : source.nodes) {
    if (!is_folded(node)) continue;
    Node copy = node;
    graph::for_each_input(copy, [&](ValueId& id) { id = inside[static_cast<size_t>(id)]; });
    std::vector<TensorMeta> metas;
    for (ValueId id : node.outputs) metas.push_back(source.meta(id));
    int32_t index = constant_part.add_node(node.op, std::move(copy.args), std::move(metas));
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      ValueId id = node.outputs[i];
      inside[static_cast<size_t>(id)] = constant_part.nodes[static_cast<size_t>(index)].outputs[i];
      if (!is_needed[static_cast<size_t>(id)]) continue;
      constant_part.outputs.push_back({inside[static_cast<size_t>(id)]});
      results.push_back(id);
    }
  }
  if (results.empty()) return source;

  std::optional<std::vector<int32_t>> handles = evaluate(constant_part);
  if (!handles) return source;
  check(handles->size() == results.size(),
        "constant folding got another number of results than it asked for");
  Rewriter rewriter(source);
  for (size_t i = 0; i < results.size(); ++i)
    rewriter.set(results[i], rewriter.graph().add_constant(source.meta(results[i]), (*handles)[i]));
  for (const Node& node : source.nodes)
    if (!is_folded(node)) rewriter.keep(rewriter.renamed(node));
  return rewriter.finish();
}

}  // namespace oxy::passes
