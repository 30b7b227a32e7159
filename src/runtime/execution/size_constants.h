// Tensors that depend on sizes alone: computed once for a set of sizes, and kept for the sets that were used
// last.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "graph/graph.h"
#include "runtime/execution/compiled_graph.h"
#include "runtime/values/tensors.h"

namespace oxy::runtime {

class SizeConstants {
 public:
  using Tensors = std::shared_ptr<const std::vector<at::Tensor>>;
  // Compiles the graph. Null: it cannot be compiled. Any thread may call it, with or without the GIL.
  using Compile = std::function<std::unique_ptr<CompiledGraph>()>;

  // `graph`: functional and deterministic; `inputs[i]` is always its input i, and nobody writes to it. Its
  // nodes are of PyTorch's core. It runs operator by operator for the first sets of sizes, so that a first
  // call waits for no kernels, and is compiled for the others.
  SizeConstants(graph::Graph graph, std::vector<at::Tensor> inputs, Compile compile);

  // The outputs of the graph for these sizes, on the current queues of their devices. Nobody may write to
  // them. Thread-safe. Throws LeftToEager or what an operator throws.
  Tensors get(SymbolValues symbols);

  struct Held {
    size_t sets = 0;
    int64_t bytes = 0;
  };
  Held held() const;

  // The most sets that are kept, and their bytes. The set that was used last is kept in any case.
  static constexpr size_t kMostSets = 8;
  static constexpr int64_t kMostBytes = int64_t{32} << 20;

 private:
  struct Key {
    std::vector<int64_t> values;  // of symbols_
    std::vector<int64_t> queues;  // by device (DeviceRuntime::current_queue)
    bool operator==(const Key&) const = default;
  };
  struct Kept {
    Key key;
    Tensors tensors;
    int64_t bytes = 0;
  };

  // Nothing: the program records what a device does.
  std::optional<std::vector<int64_t>> current_queues() const;
  Tensors compute(SymbolValues symbols);
  CompiledGraph* compiled();  // null: it is interpreted
  CompiledGraph* find_compiled();
  std::vector<at::Tensor> interpreted(SymbolValues symbols) const;
  void keep(Key key, const Tensors& tensors);

  graph::Graph graph_;
  std::vector<at::Tensor> inputs_;
  Compile compile_;
  std::vector<int64_t> symbols_;      // the ids of those that the graph mentions
  std::vector<c10::Device> devices_;  // of what it computes, without the host
  mutable std::mutex mutex_;
  std::vector<Kept> kept_;     // most recent last
  int64_t bytes_ = 0;          // of all that are kept
  int64_t until_compiled_;     // so many sets are still computed operator by operator
  bool was_compiled_ = false;  // or a thread is about to
  std::unique_ptr<CompiledGraph> compiled_;
};

}  // namespace oxy::runtime
