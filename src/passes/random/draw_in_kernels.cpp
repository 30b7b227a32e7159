#include "passes/random/draw_in_kernels.h"

#include <algorithm>
#include <map>

#include "aten/operators.h"

namespace oxy::passes {

namespace {

using sym::mod;

struct Dropout {
  int64_t width = 1;
  int64_t threads = 1;
  Expr count;
};

// Dropouts whose counters are taken in one step.
struct Run {
  Device device;
  int64_t threads = 1;       // of the device
  std::vector<Expr> counts;  // elements of each
  size_t first = 0;          // the step stands before the node with this number
};

class Planner {
 public:
  Planner(const Graph& graph, const FindDropoutThreads& find) : graph_(graph), find_(find) {
    bool is_open = false;
    size_t behind_last_draw = 0, position = 0;
    for (const NodeId id : graph.nodes.ids()) {
      const Node& node = graph.nodes[id];
      const std::optional<Dropout> dropout = describe(node);
      if (dropout) {
        if (is_open && runs_.back().device != device_of(node)) is_open = false;
        if (!is_open) runs_.push_back({device_of(node), limits_.threads, {}, behind_last_draw});
        is_open = true;
        places_[id] = {runs_.size() - 1, runs_.back().counts.size(), *dropout};
        runs_.back().counts.push_back(dropout->count);
        behind_last_draw = position + 1;
      } else if (has_effect(node)) {
        is_open = false;
        behind_last_draw = position + 1;
      }
      ++position;
    }
  }

  struct Place {
    size_t run = 0;
    size_t number = 0;  // in the run
    Dropout dropout;
  };

  const std::vector<Run>& runs() const { return runs_; }
  const Place* place(NodeId node) const {
    const auto found = places_.find(node);
    return found == places_.end() ? nullptr : &found->second;
  }

 private:
  Device device_of(const Node& node) const { return graph_.meta(tensor_argument(node, 0)).device; }

  // Nothing where it is no dropout, or where the kernel's share of the elements depends on what is not known.
  std::optional<Dropout> describe(const Node& node) {
    if (node.op != op::native_dropout()) return std::nullopt;
    const bool* const trains = std::get_if<bool>(&node.args[2]);
    const auto* const probability = std::get_if<double>(&node.args[1]);
    if (probability == nullptr || *probability == 1 || (trains != nullptr && !*trains)) return std::nullopt;
    const TensorMeta& meta = graph_.meta(tensor_argument(node, 0));
    const std::optional<DropoutThreads> limits = find_(meta.dtype, meta.device);
    if (!limits || !is_non_overlapping_and_dense(meta)) return std::nullopt;
    limits_ = *limits;
    const Expr count = element_count(meta);
    if (count == Expr(0)) return std::nullopt;
    for (int64_t width = limits->width; width > 1; width /= 2) {
      if (mod(count, width) == Expr(0))
        return mod(meta.storage_offset, width) == Expr(0)
                   ? std::optional(Dropout{width, limits->threads, count})
                   : std::nullopt;
      if (!count.as_constant()) return std::nullopt;
    }
    const int64_t blocks = (count.constant() + limits->block - 1) / limits->block;
    return Dropout{1, std::min(limits->threads, blocks * limits->block), count};
  }

  const Graph& graph_;
  const FindDropoutThreads& find_;
  DropoutThreads limits_;
  std::vector<Run> runs_;
  std::map<NodeId, Place> places_;
};

}  // namespace

Graph draw_in_kernels(const Graph& source, const FindDropoutThreads& find) {
  const Planner planner(source, find);
  if (planner.runs().empty()) return source;
  Rewriter rewriter(source);
  std::vector<ValueId> states(planner.runs().size(), graph::kNoValue);
  size_t position = 0;
  for (const NodeId id : source.nodes.ids()) {
    const Node& original = source.nodes[id];
    const Site site{rewriter.graph(), source, original, original};
    for (size_t r = 0; r < states.size(); ++r) {
      const Run& run = planner.runs()[r];
      if (run.first != position) continue;
      const auto length = static_cast<int64_t>(run.counts.size());
      states[r] = site.emit(op::philox_states(), {run.counts, Expr(run.threads), run.device},
                            contiguous_meta(DType::Int64, run.device, {Expr(1 + length)}));
    }
    ++position;
    Node node = rewriter.renamed(original);
    if (const auto* place = planner.place(id)) {
      const graph::Argument input = node.args[0], probability = node.args[1];
      node.op = op::philox_dropout();
      node.args = {input,
                   ValueRef{states[place->run]},
                   Expr(static_cast<int64_t>(place->number)),
                   probability,
                   Expr(place->dropout.width),
                   Expr(place->dropout.threads),
                   source.meta(tensor_argument(original, 0)).strides};
    }
    rewriter.keep(node);
  }
  return rewriter.finish();
}

}  // namespace oxy::passes
