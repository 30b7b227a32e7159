// Every stage after capture, in order: a recording becomes something that runs.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/dump.h"
#include "driver/frozen_graph.h"
#include "runtime/executable.h"
#include "trace/recorder.h"

namespace oxy::driver {

enum class Backend : uint8_t {
  Native,  // fused kernels
  Eager,   // the captured graph, one operator at a time
};

struct CompileOptions {
  Backend backend = Backend::Native;
  bool freezing = true;
  double copy_budget = kDefaultCopyBudget;
  bool fuse = true;
  double activation_memory_budget = 1;  // passes::JointRoles
};

// A captured graph made ready to run.
class CompiledGraph {
 public:
  virtual ~CompiledGraph() = default;
  // Graph input i is inputs[i]. Throws runtime::IndexOutOfRange or what an operator throws; nothing that the
  // caller can see has changed then.
  virtual std::vector<at::Tensor> run(std::span<const at::Tensor> inputs) = 0;
  // The same, for inputs that nobody else needs: each may be dropped after it was read for the last time.
  virtual std::vector<at::Tensor> run_and_release(std::vector<at::Tensor> inputs) { return run(inputs); }
  // Long enough for other Python threads to run meanwhile: run() may be called without the GIL then.
  virtual bool is_long() const = 0;
  // False if the elements of input i make no difference.
  virtual bool reads(size_t /*i*/) const { return true; }
  // False once a weight that was folded or packed has been written to: the graph has to be compiled again.
  virtual bool valid(std::span<const at::Tensor> inputs) = 0;
};

// Compiles `recording`, made under the name `name`. `weights[i]`: graph input i is a parameter or buffer of a
// module, with its tensor at capture; undefined otherwise. If the recording has a backward pass, the results
// take part in autograd. Throws Unsupported with a reason for the user.
std::unique_ptr<CompiledGraph> compile(trace::Recording recording, std::span<const at::Tensor> weights,
                                       const CompileOptions& options, const std::string& name);

// What a graph's caller does with the tensors that cross its border.
struct Ownership {
  size_t visible_outputs = runtime::kAllOutputs;  // the others are for the library alone
  std::vector<bool> released_inputs;              // by input: run_and_release gets the only reference
};

// The stages for a functional graph, with constants by handle. `stage` is put before the names of dumped
// files.
std::unique_ptr<CompiledGraph> compile_functional(graph::Graph graph, std::vector<at::Tensor> constants,
                                                  std::span<const at::Tensor> weights,
                                                  const CompileOptions& options, const Dump& dump,
                                                  const std::string& stage, const Ownership& ownership = {});

}  // namespace oxy::driver
