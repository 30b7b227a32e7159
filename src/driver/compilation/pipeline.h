// The compiler, all stages after capture in order: functionalise, passes, lower, schedule, load, prepare. A
// recording becomes a CompiledGraph. pipeline.cpp is to be read from top to bottom.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "autograd/recording/joint.h"
#include "base/dump.h"
#include "driver/compilation/frozen_graph.h"
#include "driver/state/metrics.h"
#include "runtime/execution/compiled_graph.h"
#include "runtime/variants/static_variants.h"
#include "sym/hints.h"
#include "sym/multiples.h"
#include "trace/recorder/recorder.h"

namespace oxy::driver {

enum class Backend : uint8_t {
  Native,  // fused kernels
  Eager,   // the captured graph, one operator at a time
};

// The options of oxyfuel.compile() that concern compilation (docs/use.md describes them).
struct CompileOptions {
  Backend backend = Backend::Native;
  bool freezing = true;
  double copy_budget = kDefaultCopyBudget;
  bool fusion = true;
  bool tune = false;                    // backend::ScheduleOptions'
  double activation_memory_budget = 1;  // passes::JointRoles
  runtime::DeviceGraphPolicy device_graphs = runtime::DeviceGraphPolicy::AfterTwoCalls;
  runtime::StaticVariantPolicy static_variants = {};
  // False: compile() does not wait for kernels, and what it gives may be pending (Readiness).
  bool wait = true;
  sym::Hints hints = {};                      // of the graph's symbols, and of quotients of `multiples`
  std::vector<sym::Multiple> multiples = {};  // what guards hold of the graph's symbols
  SizeValues size_values = SizeValues::Apart;
};

// `graphs`, `mode`: oxyfuel.compile()'s.
runtime::DeviceGraphPolicy device_graph_policy(bool graphs, std::string_view mode);
// Whether kernels' shapes are timed on the device.
bool is_tuned(std::string_view mode);

using runtime::CompiledGraph;

// The counts of the recording itself: operators and shape fallbacks.
CompileStatistics statistics_of(const trace::Recording& recording);

// A recording whose graph is functional: its writes to inputs are `mutations`, made at its end.
struct FunctionalRecording {
  trace::Recording recording;
  std::optional<autograd::Joint> joint;  // set if its graph is a joint graph
  graph::Graph recorded;                 // the graph as recorded; empty if it was functional already
};

// Throws Unsupported for writes that cannot be made functional. `joint`: set if the recording is a joint
// graph.
FunctionalRecording make_functional(trace::Recording recording, std::optional<autograd::Joint> joint,
                                    const CompileOptions& options, const Dump& dump);

struct Compiled {
  std::unique_ptr<CompiledGraph> graph;
  // Without backward graphs, which are compiled at their first use, and without the memory of what is
  // pending: both are added to the metrics later.
  CompileStatistics statistics;
};

// Compiles a recording. `weights[i]`: the tensor of graph input i if it is a parameter or buffer that may be
// frozen, else undefined. With a joint graph the results take part in autograd. Throws Unsupported with a
// reason for the user.
Compiled compile(FunctionalRecording functional, std::span<const at::Tensor> weights,
                 const CompileOptions& options, const Dump& dump);

// Compiles a functional graph that is not a joint graph, such as one half of one. `constants`: by handle.
// `stage`: a prefix for the names of dumped files. `ownership`: what the caller does with inputs and outputs.
Compiled compile_functional(graph::Graph graph, std::vector<at::Tensor> constants,
                            std::span<const at::Tensor> weights, const CompileOptions& options,
                            const Dump& dump, const std::string& stage,
                            const runtime::Ownership& ownership = {});

}  // namespace oxy::driver
