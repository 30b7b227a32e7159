#include "passes/weights/fold_constants.h"

#include <algorithm>
#include <limits>
#include <ranges>

#include "base/error.h"
#include "ops/core/registry.h"
#include "passes/rewriting/rewrite.h"

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
  if (has_effect(node) || ops::traits_of(*node.op).is_uninitialised) return false;
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
  IdVector<ValueId, bool> is_constant;  // depends on constants alone
  IdVector<ValueId, int64_t> bytes;     // of the constants that a value is made of
};

Analysis analyse(const Graph& graph) {
  Analysis a{IdVector<ValueId, bool>(graph.values.size()), IdVector<ValueId, int64_t>(graph.values.size())};
  for (const graph::Constant& constant : graph.constants) {
    const TensorMeta& meta = graph.meta(constant.value);
    if (has_symbols(meta)) continue;
    a.is_constant[constant.value] = true;
    a.bytes[constant.value] = element_count(meta).constant() * static_cast<int64_t>(item_size(meta.dtype));
  }
  for (const Node& node : graph.nodes) {
    if (!can_fold(graph, node)) continue;
    bool all = true;
    int64_t sources = 0;
    graph::for_each_input(node, [&](ValueId id) {
      all = all && a.is_constant[id];
      sources = std::min(sources + a.bytes[id], std::numeric_limits<int64_t>::max() / 4);
    });
    if (!all) continue;
    for (ValueId id : node.outputs) {
      a.is_constant[id] = true;
      a.bytes[id] = sources;
    }
  }
  return a;
}

// What is computed before the first call.
struct Choice {
  IdVector<NodeId, bool> is_folded;     // a constant takes the place of its results
  IdVector<NodeId, bool> is_evaluated;  // part of the graph that makes those constants
  IdVector<ValueId, bool> is_result;    // such a constant
};

Choice choose(const Graph& graph, const FoldOptions& options) {
  Analysis analysis = analyse(graph);
  Choice choice{IdVector<NodeId, bool>(graph.nodes.size()), IdVector<NodeId, bool>(graph.nodes.size()),
                IdVector<ValueId, bool>(graph.values.size())};
  IdVector<ValueId, bool> is_read(graph.values.size(), false);       // by what is computed at every call
  IdVector<ValueId, bool> is_evaluated(graph.values.size(), false);  // read by what is computed before
  auto read = [&](ValueId id) { is_read[id] = true; };
  for (const graph::Output& output : graph.outputs) read(output.value);
  for (const graph::Mutation& mutation : graph.mutations) read(mutation.value);

  for (const NodeId i : graph.nodes.ids() | std::views::reverse) {
    const Node& node = graph.nodes[i];
    bool is_constant = !node.outputs.empty() && node.outputs.front() != graph::kNoValue &&
                       analysis.is_constant[node.outputs.front()];
    if (!is_constant) {
      graph::for_each_input(node, read);
      continue;
    }
    bool fits = true;
    bool has_readers = false;
    bool has_evaluated_readers = false;
    for (ValueId id : node.outputs) {
      has_evaluated_readers = has_evaluated_readers || is_evaluated[id];
      if (!is_read[id]) continue;
      has_readers = true;
      // A view costs nothing at a call, and a constant has to be watched.
      fits = fits && !is_view_like(*node.op) &&
             stored_bytes(graph, node, graph.meta(id)) <= std::max(analysis.bytes[id], options.growth_bytes);
    }
    choice.is_folded[i] = fits;
    if (has_readers && !fits) graph::for_each_input(node, read);
    for (ValueId id : node.outputs) choice.is_result[id] = fits && is_read[id];
    choice.is_evaluated[i] = has_evaluated_readers || (has_readers && fits);
    if (choice.is_evaluated[i]) graph::for_each_input(node, [&](ValueId id) { is_evaluated[id] = true; });
  }
  return choice;
}

// The chosen nodes as a graph of their own; `results` gets the source's value for each of its outputs.
Graph constant_part(const Graph& source, const Choice& choice, std::vector<ValueId>& results) {
  Graph part;
  IdVector<ValueId, ValueId> inside(source.values.size(), graph::kNoValue);
  for (const graph::Constant& constant : source.constants)
    inside[constant.value] = part.add_constant(source.meta(constant.value), constant.handle);
  for (const NodeId i : source.nodes.ids()) {
    if (!choice.is_evaluated[i]) continue;
    const Node& node = source.nodes[i];
    Node copy = node;
    graph::for_each_input(copy, [&](ValueId& id) { id = inside[id]; });
    std::vector<TensorMeta> metas;
    for (ValueId id : node.outputs) metas.push_back(source.meta(id));
    NodeId index = part.add_node(node.op, std::move(copy.args), std::move(metas));
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      ValueId id = node.outputs[k];
      inside[id] = part.nodes[index].outputs[k];
      if (!choice.is_result[id]) continue;
      part.outputs.push_back({inside[id]});
      results.push_back(id);
    }
  }
  return part;
}

}  // namespace

IdVector<ValueId, bool> constant_values(const Graph& graph) {
  return analyse(graph).is_constant;
}

Graph fold_constants(const Graph& source, const EvaluateConstants& evaluate, const FoldOptions& options) {
  Choice choice = choose(source, options);
  std::vector<ValueId> results;
  Graph part = constant_part(source, choice, results);
  if (results.empty()) return source;
  std::optional<std::vector<int32_t>> handles = evaluate(part);
  if (!handles) return source;
  check(handles->size() == results.size(),
        "constant folding got another number of results than it asked for");
  Rewriter rewriter(source);
  for (size_t i = 0; i < results.size(); ++i)
    rewriter.set(results[i], rewriter.graph().add_constant(source.meta(results[i]), (*handles)[i]));
  for (const NodeId i : source.nodes.ids())
    if (!choice.is_folded[i]) rewriter.keep(rewriter.renamed(source.nodes[i]));
  return rewriter.finish();
}

}  // namespace oxy::passes
