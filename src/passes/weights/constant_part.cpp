#include "passes/weights/constant_part.h"

#include <algorithm>
#include <limits>
#include <ranges>

#include "aten/opaque.h"
#include "aten/operators.h"
#include "base/error.h"
#include "graph/sizes.h"
#include "ops/core/registry.h"
#include "passes/rewriting/rewrite.h"
#include "sym/hints.h"

namespace oxy::passes {
namespace {

bool mentions_symbols(const Graph& graph, const Node& node) {
  return std::ranges::any_of(node.args, [](const Argument& a) { return graph::has_symbols(a); }) ||
         std::ranges::any_of(node.outputs, [&](ValueId id) { return graph::has_symbols(graph.meta(id)); });
}

// What the memory of a tensor of these sizes takes.
int64_t estimated_bytes(const TensorMeta& meta) {
  int64_t count = 1;
  for (size_t d = 0; d < meta.sizes.size(); ++d)
    if (meta.strides[d] != Expr(0)) count *= sym::estimate(meta.sizes[d]);
  return count * static_cast<int64_t>(item_size(meta.dtype));
}

// Whether a node can be evaluated by itself. Operators of our own are parts of generated kernels; weights are
// packed by the device where sizes are known.
bool has_eager_kernel(const OperatorSchema& op, bool is_sized) {
  const bool packs = &op == op::pack_linear() || &op == op::pack_convolution();
  return is_of_core(op) || (!is_sized && (packs || !is_our_own(op)));
}

enum class Kind : uint8_t { Varies, Constant, Sized };

struct Analysis {
  IdVector<ValueId, Kind> kind;
  IdVector<ValueId, int64_t> bytes;  // of the constants that a value is made of
};

Analysis analyse(const Graph& graph, Invariance invariance) {
  Analysis a{IdVector<ValueId, Kind>(graph.values.size(), Kind::Varies),
             IdVector<ValueId, int64_t>(graph.values.size())};
  for (const graph::Constant& constant : graph.constants) {
    const TensorMeta& meta = graph.meta(constant.value);
    if (graph::has_symbols(meta)) continue;
    a.kind[constant.value] = Kind::Constant;
    a.bytes[constant.value] = element_count(meta).constant() * static_cast<int64_t>(item_size(meta.dtype));
  }
  for (const Node& node : graph.nodes) {
    if (has_effect(node) || ops::traits_of(*node.op).is_uninitialised) continue;
    if (std::ranges::any_of(node.outputs, [](ValueId id) { return id == graph::kNoValue; })) continue;
    bool varies = false;
    bool is_sized = mentions_symbols(graph, node);
    int64_t sources = 0;
    graph::for_each_input(node, [&](ValueId id) {
      varies = varies || a.kind[id] == Kind::Varies;
      is_sized = is_sized || a.kind[id] == Kind::Sized;
      sources = std::min(sources + a.bytes[id], std::numeric_limits<int64_t>::max() / 4);
    });
    if (varies) continue;
    if (!has_eager_kernel(*node.op, is_sized) || (is_sized && invariance == Invariance::Always)) continue;
    for (ValueId id : node.outputs) {
      a.kind[id] = is_sized ? Kind::Sized : Kind::Constant;
      a.bytes[id] = sources;
    }
  }
  return a;
}

// Which nodes are computed before a call.
class Chooser {
 public:
  Chooser(const Graph& graph, Invariance invariance, int64_t growth_bytes)
      : graph_(graph),
        invariance_(invariance),
        growth_bytes_(growth_bytes),
        analysis_(analyse(graph, invariance)),
        is_replaced_(graph.nodes.size()),
        is_evaluated_(graph.nodes.size()),
        is_result_(graph.values.size()),
        is_read_(graph.values.size()),
        is_read_inside_(graph.values.size()),
        is_given_away_(graph.values.size()) {}

  ConstantPart run() {
    for (const graph::Output& output : graph_.outputs) is_read_[output.value] = true;
    for (const graph::Mutation& mutation : graph_.mutations) is_read_[mutation.value] = true;
    if (invariance_ == Invariance::WhileSizesAre) is_given_away_ = is_read_;
    for (const NodeId n : graph_.nodes.ids() | std::views::reverse) choose(n);
    ConstantPart part;
    copy_chosen(part);
    part.is_replaced = std::move(is_replaced_);
    return part;
  }

 private:
  bool may_be_result(const Node& node, ValueId id) const {
    // A view costs nothing at a call, and a constant has to be held.
    if (is_view_like(*node.op)) return false;
    if (estimated_bytes(graph_.meta(id)) > analysis_.bytes[id] + growth_bytes_) return false;
    if (invariance_ == Invariance::Always) return true;
    if (analysis_.kind[id] != Kind::Sized || is_given_away_[id]) return false;
    bool has_inputs = false;
    graph::for_each_input(node, [&](ValueId) { has_inputs = true; });
    return has_inputs || !ops::traits_of(*node.op).is_cheap;
  }

  void choose(NodeId n) {
    const Node& node = graph_.nodes[n];
    const auto read = [&](ValueId id) { is_read_[id] = true; };
    if (is_view_like(*node.op) && std::ranges::any_of(node.outputs, [&](ValueId id) {
          return id != graph::kNoValue && is_given_away_[id];
        }))
      graph::for_each_input(node, [&](ValueId id) { is_given_away_[id] = true; });
    const bool is_constant = !node.outputs.empty() && node.outputs.front() != graph::kNoValue &&
                             analysis_.kind[node.outputs.front()] != Kind::Varies;
    if (!is_constant) {
      graph::for_each_input(node, read);
      return;
    }
    // A node that may raise is needed though nobody reads it: if it raises, nothing is folded, and the call
    // raises.
    bool fits = true;
    bool is_needed = ops::may_raise(graph_, node);
    bool has_readers_inside = false;
    for (ValueId id : node.outputs) {
      has_readers_inside = has_readers_inside || is_read_inside_[id];
      if (!is_read_[id]) continue;
      is_needed = true;
      fits = fits && may_be_result(node, id);
    }
    is_replaced_[n] = fits;
    if (is_needed && !fits) graph::for_each_input(node, read);
    for (ValueId id : node.outputs) is_result_[id] = fits && is_read_[id];
    is_evaluated_[n] = has_readers_inside || (is_needed && fits);
    if (is_evaluated_[n]) graph::for_each_input(node, [&](ValueId id) { is_read_inside_[id] = true; });
  }

  void copy_chosen(ConstantPart& part) const {
    IdVector<ValueId, ValueId> inside(graph_.values.size(), graph::kNoValue);
    for (const graph::Constant& constant : graph_.constants)
      inside[constant.value] = part.graph.add_constant(graph_.values[constant.value].meta, constant.handle);
    for (const NodeId n : graph_.nodes.ids()) {
      if (!is_evaluated_[n]) continue;
      const Node& node = graph_.nodes[n];
      Node copy = node;
      graph::rename_inputs(copy, [&](ValueId id) { return inside[id]; });
      std::vector<TensorMeta> metas;
      for (ValueId id : node.outputs) metas.push_back(graph_.meta(id));
      const NodeId index = part.graph.add_node(node.op, std::move(copy.args), std::move(metas));
      for (size_t k = 0; k < node.outputs.size(); ++k) {
        const ValueId id = node.outputs[k];
        inside[id] = part.graph.nodes[index].outputs[k];
        if (!is_result_[id]) continue;
        part.graph.outputs.push_back({inside[id]});
        part.results.push_back(id);
      }
    }
  }

  const Graph& graph_;
  Invariance invariance_;
  int64_t growth_bytes_;
  Analysis analysis_;
  IdVector<NodeId, bool> is_replaced_;      // a constant takes the place of its results
  IdVector<NodeId, bool> is_evaluated_;     // part of the graph that makes those constants
  IdVector<ValueId, bool> is_result_;       // such a constant
  IdVector<ValueId, bool> is_read_;         // by what is computed at every call
  IdVector<ValueId, bool> is_read_inside_;  // by what is computed before
  IdVector<ValueId, bool> is_given_away_;   // its memory is that of a result of the graph
};

}  // namespace

ConstantPart find_constant_part(const Graph& source, Invariance invariance, int64_t growth_bytes) {
  return Chooser(source, invariance, growth_bytes).run();
}

Graph with_constants(const Graph& source, const ConstantPart& part, std::span<const int32_t> handles) {
  check(handles.size() == part.results.size(), "a constant part has another number of results than handles");
  Rewriter rewriter(source);
  for (size_t i = 0; i < part.results.size(); ++i)
    rewriter.set(part.results[i], rewriter.graph().add_constant(source.meta(part.results[i]), handles[i]));
  for (const NodeId n : source.nodes.ids())
    if (!part.is_replaced[n]) rewriter.keep(rewriter.renamed(source.nodes[n]));
  return rewriter.finish();
}

IdVector<ValueId, bool> constant_values(const Graph& graph) {
  const Analysis analysis = analyse(graph, Invariance::Always);
  IdVector<ValueId, bool> result(graph.values.size());
  for (const ValueId id : result.ids()) result[id] = analysis.kind[id] == Kind::Constant;
  return result;
}

}  // namespace oxy::passes
