// A graph that runs, whatever runs it.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <exception>
#include <functional>
#include <span>
#include <vector>

#include "runtime/execution/executable.h"

namespace oxy::runtime {

// Whether a graph can run. Pending: its kernels are still being compiled. Failed: they cannot be.
enum class Readiness : uint8_t { Ready, Pending, Failed };

// A captured graph made ready to run, or on the way there.
class CompiledGraph {
 public:
  virtual ~CompiledGraph() = default;
  // What it is now; what was Pending becomes one of the others once. All that follows is for graphs that are
  // Ready. Thread-safe.
  virtual Readiness readiness() { return Readiness::Ready; }
  // Failed: what compiling it threw.
  virtual std::exception_ptr failure() const { return nullptr; }
  // Graph input i is inputs[i]. `symbols`: their values by id; those that the graph computes
  // (graph::ComputedSymbol) are written. Throws LeftToEager or what an operator throws; nothing else that the
  // caller can see has changed then. Throws FailedAfterRun where that is not so.
  virtual std::vector<at::Tensor> run(std::span<const at::Tensor> inputs, std::span<int64_t> symbols) = 0;
  // The same, for inputs that nobody else needs: each may be dropped after it was read for the last time.
  virtual std::vector<at::Tensor> run_and_release(std::vector<at::Tensor> inputs,
                                                  std::span<int64_t> symbols) {
    return run(inputs, symbols);
  }
  // Long enough for other Python threads to run meanwhile: run() may be called without the GIL then.
  virtual bool is_long() const = 0;
  // Some sizes that the guards allow are left to eager, before anything has run.
  virtual bool may_refuse_sizes() const { return false; }
  // The last call replayed device graphs and ran nothing else, as the next one is likely to do. No operator
  // makes itself an owner of inputs then.
  virtual bool only_replays() const { return false; }
  // False if the elements of input i make no difference.
  virtual bool reads(size_t /*i*/) const { return true; }
  virtual DeviceGraphState device_graph_state() const { return {}; }
  // Whether it holds weights that were folded or packed, so that valid() may become false.
  virtual bool holds_weights() const { return false; }
  // False once such a weight has been written to: the graph has to be compiled again. `input(i)`: graph input
  // i, which is asked for where it is such a weight.
  using InputOf = std::function<const at::Tensor&(size_t i)>;
  virtual bool valid(const InputOf& /*input*/) { return true; }
};

// What a graph's caller does with the tensors that cross its border.
struct Ownership {
  size_t visible_outputs = kAllOutputs;  // the others are for the library alone
  std::vector<bool> released_inputs;     // by input: run_and_release gets the only reference
};

}  // namespace oxy::runtime
