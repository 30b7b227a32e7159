// Every stage after capture, in order: a recording becomes something that runs.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "autograd/joint.h"
#include "base/dump.h"
#include "driver/compilation/frozen_graph.h"
#include "driver/state/metrics.h"
#include "runtime/execution/compiled_graph.h"
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
  bool fusion = true;
  double activation_memory_budget = 1;  // passes::JointRoles
};

using runtime::CompiledGraph;

CompileStatistics statistics_of(const trace::Recording& recording);

// A recording whose graph writes to nothing that its caller can see before its end.
struct FunctionalRecording {
  trace::Recording recording;
  std::optional<autograd::Joint> joint;  // if its graph is a joint one
  graph::Graph recorded;                 // as it was; empty if it was functional already
};

FunctionalRecording make_functional(trace::Recording recording, std::optional<autograd::Joint> joint,
                                    const CompileOptions& options, const Dump& dump);

struct Compiled {
  std::unique_ptr<CompiledGraph> graph;
  CompileStatistics
      statistics;  // of what was compiled by now: backward passes are compiled when they are needed
};

// `weights[i]`: graph input i is a parameter or buffer of a module, with its tensor at capture; undefined
// otherwise. If there is a joint, the results take part in autograd. Throws Unsupported with a reason for the
// user.
Compiled compile(FunctionalRecording functional, std::span<const at::Tensor> weights,
                 const CompileOptions& options, const Dump& dump);

// The stages for a functional graph, with constants by handle. `stage` is put before the names of dumped
// files.
Compiled compile_functional(graph::Graph graph, std::vector<at::Tensor> constants,
                            std::span<const at::Tensor> weights, const CompileOptions& options,
                            const Dump& dump, const std::string& stage,
                            const runtime::Ownership& ownership = {});

}  // namespace oxy::driver
