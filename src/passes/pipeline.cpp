#include "passes/pipeline.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/config.h"
#include "base/error.h"
#include "base/timing.h"
#include "passes/accumulate_embeddings.h"
#include "passes/common_subexpressions.h"
#include "passes/convolution_to_linear.h"
#include "passes/dead_code.h"
#include "passes/decompose.h"
#include "passes/fold_batch_norm.h"
#include "passes/recompute.h"
#include "passes/separate_results.h"
#include "passes/simplify_arithmetic.h"
#include "passes/simplify_views.h"

namespace oxy::passes {
namespace {

constexpr int kMaxCleanups = 4;  // rounds of simplification until nothing changes

class PassRunner {
 public:
  PassRunner(Graph graph, const Options& options, const Dump* dump)
      : graph_(std::move(graph)), options_(options), dump_(dump) {}

  Graph run() {
    const std::vector<bool> had_own_memory = outputs_with_own_memory(graph_);
    clean_up();
    // What this computes is folded once the packing passes have seen that nobody else holds it.
    step("passes.fold_batch_norm", fold_batch_norm);
    step("passes.convolution_to_linear", convolution_to_linear);
    step("passes.channels_last",
         [this](const Graph& g) { return use_channels_last(g, options_.choose_layout); });
    step("passes.pack_convolution",
         [this](const Graph& g) { return pack_convolution(g, options_.convolution); });
    step("passes.pack_linear", [this](const Graph& g) { return pack_linear(g, options_.linear); });
    step("passes.accumulate_embeddings", accumulate_embeddings);
    step("passes.decompose", decompose);
    clean_up();
    fold();
    step("passes.separate_results", [&](const Graph& g) { return separate_results(g, had_own_memory); });
    step("passes.dead_code", remove_dead_code);
    if (has_backward_pass())
      step("passes.recompute_for_backward",
           [this](const Graph& g) { return recompute_for_backward(g, options_.activation_memory_budget); });
    return std::move(graph_);
  }

 private:
  // Of the program's own.
  bool has_backward_pass() const {
    return std::ranges::any_of(graph_.locations, [](const graph::Location& location) {
      return location.checkpoint == graph::kInBackwardPass;
    });
  }

  template <typename Pass>
  void step(std::string_view name, const Pass& pass) {
    {
      Span span(name);
      graph_ = pass(graph_);
    }
    ++count_;
    if (strict()) {
      try {
        graph::verify(graph_, true);
      } catch (const InternalError& error) {
        throw InternalError(fmt::format("after {}: {}", name, error.what()));
      }
    }
    if (dump_ == nullptr || !dump_->enabled()) return;
    std::string text = graph::print(graph_);
    if (text != dumped_) dump_->write(fmt::format("{:02}_{}.txt", count_, name), text);
    dumped_ = std::move(text);
  }

  void clean_up() {
    step("passes.dead_code", remove_dead_code);
    for (int round = 0; round < kMaxCleanups; ++round) {
      size_t before = graph_.nodes.size();
      step("passes.simplify_views", simplify_views);
      step("passes.simplify_arithmetic", simplify_arithmetic);
      step("passes.common_subexpressions", merge_common_subexpressions);
      step("passes.dead_code", remove_dead_code);
      if (graph_.nodes.size() == before) return;
    }
  }

  void fold() {
    if (!options_.evaluate_constants) return;
    step("passes.fold_constants",
         [this](const Graph& g) { return fold_constants(g, options_.evaluate_constants, options_.folding); });
    step("passes.dead_code", remove_dead_code);
  }

  Graph graph_;
  const Options& options_;
  const Dump* dump_;
  std::string dumped_;  // the last text written
  int count_ = 0;
};

}  // namespace

Graph run_passes(Graph graph, const Options& options, const Dump* dump) {
  return PassRunner(std::move(graph), options, dump).run();
}

}  // namespace oxy::passes
