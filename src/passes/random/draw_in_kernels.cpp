#include "passes/random/draw_in_kernels.h"

#include <algorithm>
#include <map>
#include <utility>

#include "aten/operators.h"

namespace oxy::passes {

namespace {

using sym::mod;

struct Dropout {
  DropoutThreads device;
  int64_t width = 1;    // elements that a thread takes at a time
  int64_t threads = 1;  // that run at once
  Expr count;           // of elements
};

// Dropouts whose counters are taken in one step.
struct Run {
  Device device;
  int64_t threads = 1;       // of the device, at most
  std::vector<Expr> counts;  // elements of each
  NodeId before;             // the step stands before this node
};

// Where a dropout has its counter.
struct Place {
  size_t run = 0;
  size_t number = 0;  // in the run
  Dropout dropout;
};

struct Plan {
  std::vector<Run> runs;
  std::map<NodeId, Place> places;
};

// Nothing where it is no dropout, where it draws nothing, or where the kernel's share of the elements depends
// on what is not known.
std::optional<Dropout> describe(const Graph& graph, const Node& node, const FindDropoutThreads& find) {
  if (node.op != op::native_dropout()) return std::nullopt;
  const bool* const trains = std::get_if<bool>(&node.args[2]);
  const auto* const probability = std::get_if<double>(&node.args[1]);
  if (probability == nullptr || *probability == 1 || (trains != nullptr && !*trains)) return std::nullopt;
  const TensorMeta& meta = graph.meta(tensor_argument(node, 0));
  const Expr count = element_count(meta);
  if (count == Expr(0) || !is_non_overlapping_and_dense(meta)) return std::nullopt;
  const std::optional<DropoutThreads> device = find(meta.dtype, meta.device);
  if (!device) return std::nullopt;
  for (int64_t width = device->width; width > 1; width /= 2) {
    if (mod(count, width) == Expr(0)) {
      const bool is_aligned = mod(meta.storage_offset, width) == Expr(0);
      return is_aligned ? std::optional(Dropout{*device, width, device->threads, count}) : std::nullopt;
    }
    if (!count.as_constant()) return std::nullopt;
  }
  const int64_t blocks = (count.constant() + device->block - 1) / device->block;
  return Dropout{*device, 1, std::min(device->threads, blocks * device->block), count};
}

Plan make_plan(const Graph& graph, const FindDropoutThreads& find) {
  Plan plan;
  bool is_open = false;  // whether the last run may go on
  NodeId behind_last_draw(0);
  for (const NodeId id : graph.nodes.ids()) {
    const Node& node = graph.nodes[id];
    const std::optional<Dropout> dropout = describe(graph, node, find);
    if (!dropout && !has_effect(node)) continue;
    if (dropout) {
      const Device device = graph.meta(tensor_argument(node, 0)).device;
      if (!is_open || plan.runs.back().device != device)
        plan.runs.push_back({device, dropout->device.threads, {}, behind_last_draw});
      std::vector<Expr>& counts = plan.runs.back().counts;
      plan.places[id] = {plan.runs.size() - 1, counts.size(), *dropout};
      counts.push_back(dropout->count);
    }
    is_open = dropout.has_value();
    behind_last_draw = NodeId(id.number() + 1);
  }
  return plan;
}

}  // namespace

Graph draw_in_kernels(const Graph& source, const FindDropoutThreads& find) {
  const Plan plan = make_plan(source, find);
  Rewriter rewriter(source);
  std::vector<ValueId> states;  // by run, as far as they are made
  for (const NodeId id : source.nodes.ids()) {
    const Node& original = source.nodes[id];
    const Site site{rewriter.graph(), source, original, original};
    for (; states.size() < plan.runs.size() && plan.runs[states.size()].before == id;) {
      const Run& run = plan.runs[states.size()];
      const auto length = static_cast<int64_t>(run.counts.size());
      states.push_back(site.emit(op::philox_states(), {run.counts, Expr(run.threads), run.device},
                                 contiguous_meta(DType::Int64, run.device, {Expr(1 + length)})));
    }
    Node node = rewriter.renamed(original);
    if (const auto found = plan.places.find(id); found != plan.places.end()) {
      const Place& place = found->second;
      const graph::Argument input = node.args[0], probability = node.args[1];
      const TensorMeta& meta = source.meta(tensor_argument(original, 0));
      TensorMeta kept = meta;
      kept.dtype = DType::Bool;
      kept.storage_offset = 0;
      const ValueId mask = site.emit(
          op::philox_mask(),
          {ValueRef{states[place.run]}, Expr(static_cast<int64_t>(place.number)), probability,
           Expr(place.dropout.width), Expr(place.dropout.threads), meta.dtype, meta.sizes, meta.strides},
          kept);
      const ValueId result = site.emit(op::scale_kept(), {input, ValueRef{mask}, probability}, site.meta(0));
      if (original.outputs[0] != graph::kNoValue) rewriter.set(original.outputs[0], result);
      if (original.outputs[1] != graph::kNoValue) rewriter.set(original.outputs[1], mask);
    } else {
      rewriter.keep(std::move(node));
    }
  }
  return rewriter.finish();
}

}  // namespace oxy::passes
