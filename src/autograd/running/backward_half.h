// The backward half of a compiled region, or a part of it.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "autograd/running/backward_node.h"
#include "autograd/running/forward_replay.h"
#include "autograd/running/graph_compiler.h"

namespace oxy::autograd {

using runtime::CompiledGraph;

// How gradients are made that can be differentiated again.
struct Replay {
  std::shared_ptr<const ForwardReplay> forward;  // null if the slice cannot be run again
  ForwardReplay::Slice slice;
  // By input of the slice, then result: its place among what the backward pass saves anyway; nothing if the
  // node is to keep it besides.
  std::vector<std::optional<size_t>> saved;
};

// It is compiled when a gradient is asked for the first time, as many calls never do, or always for the same
// of several outputs; or ahead of that, by begin(). While that is pending, the graph for all tangents runs,
// or the graph is interpreted.
class BackwardHalf final : public BackwardProgram {
 public:
  // Gradient i is output gradients[i] of the graph.
  BackwardHalf(graph::Graph graph, std::vector<at::Tensor> constants, std::vector<size_t> gradients,
               std::vector<bool> released_inputs, GraphCompiler::Compile compile, std::string stage,
               Replay replay);

  const Replay& replay() const { return replay_; }
  runtime::DeviceGraphState device_graph_state();
  // Has the graph compiled ahead that is likely to be asked for first: the graph for a loss, if exactly one
  // of the tangents is a single number; otherwise the graph for all tangents.
  void begin(const GraphCompiler::Begin& begin);
  void compile_kernels();  // of that graph
  // Has the graph for all tangents compiled. The GIL is held.
  void request();
  // Whether that is on its way.
  bool is_pending();

  std::vector<at::Tensor> run(std::vector<at::Tensor> saved, std::vector<at::Tensor> tangents,
                              std::vector<bool> absent, bool has_stale,
                              runtime::SymbolValues symbols) override;
  std::vector<at::Tensor> run_again(std::span<const at::Tensor> saved, std::span<const at::Tensor> kept,
                                    std::span<const at::Tensor> tangents, const std::vector<bool>& wanted,
                                    bool create_graph, runtime::SymbolValues symbols) override;

 private:
  struct Variant {
    std::unique_ptr<CompiledGraph> compiled;
    bool reads_all_tangents = true;
    graph::Graph graph;  // what is interpreted where nothing compiled is ready, or where it refuses sizes

    bool is_ready() const { return compiled && compiled->readiness() == runtime::Readiness::Ready; }
  };

  struct Begun {
    std::vector<bool> absent;
    std::unique_ptr<BegunCompilation> compilation;
  };

  const graph::Output& output_of(size_t gradient) const { return graph_.outputs[gradients_[gradient]]; }
  bool is_passed_on(size_t input) const;
  const Variant& variant_for(std::vector<bool> absent);  // what runs now
  // One that reads nothing for absent tangents: `made_now`, to be interpreted, where too many are compiled.
  const Variant& exact_for(std::vector<bool> absent, Variant& made_now);
  const Variant* for_all_tangents();  // null: it was not asked for yet
  // The GIL is taken before the mutex, never under it.
  const Variant& compiled_for(std::vector<bool> absent);
  const Variant* find(const std::vector<bool>& absent) const;
  graph::Graph without(const std::vector<bool>& absent) const;
  std::vector<at::Tensor> run_compiled(const Variant& variant, std::vector<at::Tensor> inputs,
                                       runtime::SymbolValues symbols) const;

  graph::Graph graph_;
  std::vector<at::Tensor> constants_;
  std::vector<size_t> gradients_;
  runtime::Ownership ownership_;
  GraphCompiler::Compile compile_;
  std::string stage_;
  Replay replay_;
  std::mutex mutex_;
  std::map<std::vector<bool>, std::unique_ptr<Variant>> variants_;  // by what is absent
  // The GIL guards it. It is declared behind `constants_`, so that it never holds the last reference to one.
  std::optional<Begun> begun_;
};

}  // namespace oxy::autograd
