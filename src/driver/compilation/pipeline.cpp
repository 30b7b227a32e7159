#include "driver/compilation/pipeline.h"

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "aten/operators.h"
#include "autograd/running/compile_differentiable.h"
#include "autograd/running/graph_compiler.h"
#include "autograd/running/related_results.h"
#include "backend/registry/backends.h"
#include "backend/shared/schedule.h"
#include "base/config.h"
#include "base/dump.h"
#include "base/error.h"
#include "base/log.h"
#include "base/timing.h"
#include "cpy/gil.h"
#include "driver/compilation/compile_ahead.h"
#include "driver/compilation/frozen_graph.h"
#include "driver/compilation/pending_graph.h"
#include "driver/compilation/staged_graph.h"
#include "driver/compilation/static_plan.h"
#include "driver/state/metrics.h"
#include "graph/sizes.h"
#include "loop/devices.h"
#include "loop/lowering.h"
#include "passes/pipeline/pipeline.h"
#include "passes/staging/index_checks.h"
#include "passes/staging/stages.h"
#include "plan/step_buffers.h"
#include "runtime/device/device.h"
#include "runtime/device/generators.h"
#include "runtime/execution/executable.h"
#include "runtime/execution/interpreter.h"
#include "runtime/execution/size_constants.h"
#include "runtime/extern/index_range.h"
#include "runtime/extern/program_operators.h"
#include "runtime/values/convert.h"
#include "runtime/variants/static_variants.h"
#include "torch_api/error_text.h"
#include "trace/functional/functionalise.h"
#include "trace/metadata/metadata.h"

namespace oxy::driver {
namespace {

class InterpretedGraph : public CompiledGraph {
 public:
  InterpretedGraph(graph::Graph graph, std::vector<at::Tensor> constants)
      : graph_(std::move(graph)), constants_(std::move(constants)) {
    random_devices_ = runtime::random_devices(graph_);
  }
  std::vector<at::Tensor> run(std::span<const at::Tensor> inputs, std::span<int64_t> symbols) override {
    runtime::KeepsGenerators generators(random_devices_);
    std::vector<at::Tensor> results = runtime::interpret(graph_, inputs, constants_, symbols);
    generators.advance();
    return results;
  }
  bool is_long() const override { return false; }

 private:
  graph::Graph graph_;
  std::vector<at::Tensor> constants_;
  std::vector<c10::Device> random_devices_;
};

// Plans with so many steps run without the GIL: releasing it takes 0.1 us, which does not count then.
constexpr size_t kLongPlan = 8;

class NativeGraph : public CompiledGraph {
 public:
  // `inputs[i]`: the captured input that is the executable's input i. Behind these it takes what `sized` has
  // for the sizes of the call; null: nothing. `variants`: of the executable; null: it serves all sizes.
  NativeGraph(std::unique_ptr<runtime::Executable> executable, std::vector<int32_t> inputs,
              std::vector<std::pair<int32_t, runtime::FrozenTensor>> weights,
              std::unique_ptr<runtime::SizeConstants> sized,
              std::unique_ptr<runtime::StaticVariants> variants)
      : executable_(std::move(executable)),
        inputs_(std::move(inputs)),
        weights_(std::move(weights)),
        sized_(std::move(sized)),
        variants_(std::move(variants)),
        takes_all_(sized_ == nullptr) {
    for (size_t i = 0; i < inputs_.size(); ++i)
      takes_all_ = takes_all_ && inputs_[i] == static_cast<int32_t>(i);
    for (const int32_t input : plan::inputs_read(executable_->plan()))
      if (static_cast<size_t>(input) < inputs_.size()) read_.insert(inputs_[static_cast<size_t>(input)]);
  }

  bool reads(size_t input) const override { return read_.contains(static_cast<int32_t>(input)); }

  std::vector<at::Tensor> run(std::span<const at::Tensor> inputs, std::span<int64_t> symbols) override {
    if (takes_all_ && inputs.size() == inputs_.size()) return run_for(inputs, symbols);
    const runtime::SizeConstants::Tensors sized = sized_ ? sized_->get(symbols) : nullptr;
    BorrowedTensors taken(inputs_.size() + (sized ? sized->size() : 0));
    for (const int32_t i : inputs_) taken.add(inputs[static_cast<size_t>(i)]);
    if (sized)
      for (const at::Tensor& tensor : *sized) taken.add(tensor);
    return run_for(taken.get(), symbols);
  }

  std::vector<at::Tensor> run_and_release(std::vector<at::Tensor> inputs,
                                          std::span<int64_t> symbols) override {
    std::vector<at::Tensor> mine;
    mine.reserve(inputs_.size());
    for (const int32_t i : inputs_) mine.push_back(inputs[static_cast<size_t>(i)]);
    if (sized_) {
      const runtime::SizeConstants::Tensors sized = sized_->get(symbols);
      mine.insert(mine.end(), sized->begin(), sized->end());
    }
    inputs.clear();
    if (!variants_) return executable_->run_and_release(std::move(mine), symbols);
    return variants_->run(symbols, [&](runtime::Executable& executable) {
      return executable.run_and_release(std::move(mine), symbols);
    });
  }

  bool is_long() const override { return executable_->plan().steps.size() >= kLongPlan; }
  bool only_replays() const override { return executable_->only_replays(); }
  bool may_refuse_sizes() const override { return !executable_->plan().positive.empty(); }

  runtime::DeviceGraphState device_graph_state() const override { return executable_->device_graph_state(); }

  bool holds_weights() const override { return !weights_.empty(); }
  bool valid(const InputOf& input) override {
    bool unchanged = true;
    for (const auto& [place, weight] : weights_) {
      const at::Tensor& tensor = input(static_cast<size_t>(place));
      if (weight.unchanged(tensor)) continue;
      log(Channel::Recompiles, "input {} was written to", place);
      runtime::note_thaw(tensor);
      unchanged = false;
    }
    return unchanged;
  }

 private:
  // Without owning them: to own a tensor takes two atomic operations.
  class BorrowedTensors {
   public:
    explicit BorrowedTensors(size_t count) { tensors_.reserve(count); }
    ~BorrowedTensors() {
      for (at::Tensor& tensor : tensors_) Borrow::destroyBorrow(tensor);
    }
    BorrowedTensors(const BorrowedTensors&) = delete;
    BorrowedTensors& operator=(const BorrowedTensors&) = delete;
    void add(const at::Tensor& tensor) { tensors_.push_back(Borrow::createBorrow(tensor)); }
    std::span<const at::Tensor> get() const { return tensors_; }

   private:
    using Borrow = c10::MaybeOwnedTraits<at::Tensor>;
    std::vector<at::Tensor> tensors_;
  };

  std::vector<at::Tensor> run_for(std::span<const at::Tensor> inputs, runtime::SymbolValues symbols) {
    if (!variants_) return executable_->run(inputs, symbols);
    return variants_->run(symbols,
                          [&](runtime::Executable& executable) { return executable.run(inputs, symbols); });
  }

  std::unique_ptr<runtime::Executable> executable_;
  std::vector<int32_t> inputs_;
  std::vector<std::pair<int32_t, runtime::FrozenTensor>> weights_;
  std::unique_ptr<runtime::SizeConstants> sized_;
  std::unique_ptr<runtime::StaticVariants> variants_;
  std::unordered_set<int32_t> read_;  // captured inputs whose elements a step or an output reads
  bool takes_all_;                    // the executable's inputs are the captured ones
};

void show(Channel channel, const std::string& stage, const Dump& dump,
          const std::function<std::string()>& text) {
  if (!log_enabled(channel) && !dump.enabled()) return;
  const std::string shown = text();
  log(channel, "{}", shown);
  dump.write(stage, shown);
}

// The backend for the devices of the graph's tensors.
const backend::Backend& backend_of(const graph::Graph& graph) {
  const Device device = graph::main_device(graph);
  for (const graph::Value& value : graph.values)
    if (const Device other = value.meta->device; !is_on_host(other) && other.kind != device.kind)
      throw Unsupported(fmt::format("tensors on {} and {}", str(device), str(other)),
                        "a region is compiled for devices of one kind and the host");
  const backend::Backend* const found = backend::find_backend(device.kind);
  if (found == nullptr) throw Unsupported(fmt::format("there is no backend for device {}", str(device)));
  return *found;
}

void count(const plan::Plan& plan, CompileStatistics& statistics) {
  statistics.kernels = static_cast<int64_t>(plan.kernels.size());
  for (const plan::Step& step : plan.steps) {
    if (std::holds_alternative<plan::Launch>(step)) ++statistics.launches;
    if (const auto* call = std::get_if<plan::Call>(&step)) {
      ++statistics.extern_calls;
      ++statistics.extern_names[runtime::called_operator(*call->op).name];
    }
  }
}

Compiled compile_stages(const graph::Graph& graph, std::vector<at::Tensor> constants,
                        std::span<const at::Tensor> weights, const CompileOptions& options, const Dump& dump,
                        const std::string& stage) {
  Compiled result;
  int number = 0;
  const auto compile_stage = [&](graph::Graph part, const std::vector<int32_t>& inputs) {
    std::vector<at::Tensor> own;
    if (!weights.empty())
      for (const int32_t input : inputs)
        own.push_back(input < 0 ? at::Tensor() : weights[static_cast<size_t>(input)]);
    Compiled compiled = compile_functional(std::move(part), constants, own, options, dump,
                                           fmt::format("{}stage{}_", stage, number++));
    result.statistics += compiled.statistics;
    return std::move(compiled.graph);
  };
  result.graph = compile_in_stages(graph, constants, compile_stage);
  return result;
}

// Why a graph that is compiled while another one runs is not. Called where that was thrown.
void report_failure(std::string_view what) {
  try {
    throw;
  } catch (const Unsupported& unsupported) {
    count_break(unsupported.reason(), unsupported.hint(), {});
  } catch (const std::exception& error) {
    if (strict()) throw;
    warn(fmt::format("oxyfuel: internal error, {} runs one operator at a time: {}\nPlease report it.", what,
                     torch_api::error_text(error)));
  }
}

// compile_functional() for graphs that are compiled while another one runs. Null: the reason is among the
// breaks.
std::unique_ptr<CompiledGraph> try_compile(graph::Graph graph, std::vector<at::Tensor> constants,
                                           const CompileOptions& options, const Dump& dump,
                                           const std::string& stage, const runtime::Ownership& ownership,
                                           std::string_view what) {
  try {
    Compiled compiled =
        compile_functional(std::move(graph), std::move(constants), {}, options, dump, stage, ownership);
    metrics().compiled += compiled.statistics;
    if (options.wait) return std::move(compiled.graph);
    return reporting_failure(std::move(compiled.graph),
                             [what = std::string(what)](const std::exception_ptr& failure) {
                               try {
                                 std::rethrow_exception(failure);
                               } catch (...) {
                                 report_failure(what);
                               }
                             });
  } catch (...) {
    report_failure(what);
  }
  return nullptr;
}

std::unique_ptr<runtime::SizeConstants> size_constants(SizePart part, const CompileOptions& options,
                                                       const Dump& dump, const std::string& stage) {
  show(Channel::Graph, stage + "sizes_graph", dump, [&] { return graph::print(part.graph); });
  CompileOptions own = options;
  own.size_values = SizeValues::InPlace;
  const auto compile = [graph = part.graph, own, dump, stage] {
    const cpy::WithGil gil;  // one compilation at a time
    return try_compile(graph, {}, own, dump, stage + "sizes_", {}, "what depends on sizes");
  };
  return std::make_unique<runtime::SizeConstants>(std::move(part.graph), std::move(part.inputs), compile);
}

// Null: the graph needs none, or nobody wants them. `graph`: as it was lowered.
std::unique_ptr<runtime::StaticVariants> static_variants(runtime::Executable& executable, graph::Graph graph,
                                                         const backend::Backend& device,
                                                         const loop::LoweringOptions& lowering,
                                                         backend::ScheduleOptions schedule,
                                                         runtime::StaticVariantPolicy policy,
                                                         double compile_seconds) {
  auto source = std::make_shared<StaticPlanSource>();
  source->symbols = graph::symbols_of(graph);
  source->graph = std::move(graph);
  source->device = &device;
  source->lowering = lowering;
  source->schedule = std::move(schedule);
  source->schedule.log = nullptr;
  for (const plan::Kernel& kernel : executable.plan().kernels) source->kernels.insert(kernel.name);
  std::vector<Expr> symbols = source->symbols;
  const auto make = [source = std::shared_ptr<const StaticPlanSource>(std::move(source))](
                        std::span<const int64_t> values, const std::function<bool()>& is_unwanted) {
    return make_static_plan(*source, values, is_unwanted);
  };
  return std::make_unique<runtime::StaticVariants>(executable, std::move(symbols), make, std::move(policy),
                                                   compile_seconds);
}

// A graph whose plan is made, before its kernels are there.
struct Unfinished {
  FrozenGraph frozen;
  plan::Plan plan;
  CompileOptions options;
  Dump dump;
  std::string stage;
  runtime::Ownership ownership;
  const backend::Backend& device;
  loop::LoweringOptions lowering;
  backend::ScheduleOptions schedule;
  double seconds = 0;  // of compiling what depends on sizes
};

std::unique_ptr<CompiledGraph> finish(Unfinished& source, std::shared_ptr<backend::KernelLibrary> library,
                                      CompileStatistics& statistics) {
  const Span span("prepare");
  const sym::HintScope scope(source.options.hints);
  FrozenGraph& frozen = source.frozen;
  auto executable = std::make_unique<runtime::Executable>(
      std::move(source.plan), std::move(library), std::move(frozen.constants),
      runtime::ExecutableOptions{source.ownership.visible_outputs, source.options.device_graphs});
  statistics.arena_bytes = executable->arena_bytes();
  statistics.packed_bytes = frozen.constant_bytes;
  std::unique_ptr<runtime::SizeConstants> sized;
  if (frozen.size_part)
    sized = size_constants(std::move(*frozen.size_part), source.options, source.dump, source.stage);
  std::unique_ptr<runtime::StaticVariants> variants;
  if (source.options.static_variants.is_wanted && runtime::may_have_static_variants(executable->plan())) {
    runtime::StaticVariantPolicy policy = source.options.static_variants;
    if (!source.stage.empty())
      policy.name += fmt::format(" ({})", source.stage.substr(0, source.stage.size() - 1));
    variants = static_variants(*executable, std::move(frozen.graph), source.device, source.lowering,
                               std::move(source.schedule), std::move(policy), source.seconds);
  }
  return std::make_unique<NativeGraph>(std::move(executable), std::move(frozen.inputs),
                                       std::move(frozen.weights), std::move(sized), std::move(variants));
}

std::unique_ptr<KernelRequest> request_kernels(const Unfinished& source) {
  std::vector<plan::Kernel> kernels(source.plan.kernels.begin(), source.plan.kernels.end());
  return std::make_unique<KernelRequest>(source.device, std::move(kernels));
}

std::unique_ptr<CompiledGraph> load_and_finish(Unfinished& source, CompileStatistics& statistics) {
  std::shared_ptr<backend::KernelLibrary> library;
  {
    Span span("jit");
    library = source.device.load(source.plan.kernels);
    source.seconds += span.seconds();
  }
  return finish(source, std::move(library), statistics);
}

// What the thread that asks for a graph has set for itself.
struct Caller {
  int threads = 1;  // of the CPU
  bool has_default_queue = false;
};

Caller caller_of(const graph::Graph& graph) {
  const c10::Device device = runtime::device_to_torch(graph::main_device(graph));
  const runtime::DeviceRuntime* const runtime = runtime::find_device(device.type());
  return {at::get_num_threads(), runtime != nullptr && runtime->current_queue(device.index()) == 0};
}

struct Planned {
  Unfinished unfinished;
  CompileStatistics statistics;
};

// compile_functional() as far as the plan, of a graph that reads no data, for Backend::Native. Needs no GIL,
// unless weights are frozen or there is a dropout.
Planned plan_functional(graph::Graph graph, std::vector<at::Tensor> constants,
                        std::span<const at::Tensor> weights, const CompileOptions& options, const Dump& dump,
                        const std::string& stage, const runtime::Ownership& ownership, const Caller& caller);

constexpr std::string_view kBackwardPass = "a backward pass";

std::unique_ptr<autograd::BegunCompilation> begin_backward(graph::Graph graph,
                                                           std::vector<at::Tensor> constants,
                                                           const CompileOptions& options, const Dump& dump,
                                                           const std::string& stage,
                                                           const runtime::Ownership& ownership) {
  // How a device draws the numbers of a dropout is found out by a trial, with the GIL.
  const auto is_tried = [](const graph::Node& node) { return node.op == op::native_dropout(); };
  if (passes::reads_data(graph) || std::ranges::any_of(graph.nodes, is_tried)) return nullptr;
  struct Source {
    graph::Graph graph;
    std::vector<at::Tensor> constants;
    std::optional<Planned> planned;
  };
  const auto source = std::make_shared<Source>(std::move(graph), std::move(constants));
  AheadSteps steps;
  steps.plan = [source, options, dump, stage, ownership, caller = caller_of(source->graph)] {
    source->planned.emplace(plan_functional(std::move(source->graph), std::move(source->constants), {},
                                            options, dump, stage, ownership, caller));
  };
  steps.request_kernels = [source]() -> std::unique_ptr<KernelRequest> {
    const Unfinished& unfinished = source->planned->unfinished;
    return unfinished.plan.kernels.empty() ? nullptr : request_kernels(unfinished);
  };
  steps.finish = [source](KernelRequest* kernels,
                          std::exception_ptr problem) -> std::unique_ptr<CompiledGraph> {
    try {
      if (problem) std::rethrow_exception(problem);
      auto& [unfinished, statistics] = *source->planned;
      if (kernels) unfinished.seconds += kernels->seconds();
      std::unique_ptr<CompiledGraph> result = kernels ? finish(unfinished, kernels->library(), statistics)
                                                      : load_and_finish(unfinished, statistics);
      metrics().compiled += statistics;
      return result;
    } catch (...) {
      report_failure(kBackwardPass);
    }
    return nullptr;
  };
  return compile_ahead(std::move(steps));
}

// The graph with checks of its indices by the host (passes/staging/index_checks.h): always of what a device
// would read from the host, and of all others but constants if OXYFUEL_CHECK_INDICES says so. A constant is
// looked at now, and is checked at each call only if it is out of range. Where the size is a symbol, that is
// not known.
graph::Graph with_index_checks(graph::Graph graph, const std::vector<at::Tensor>& constants) {
  const auto is_out_of_range = [&](const graph::Constant& constant, const ops::CheckedIndex& checked) {
    if (!checked.size.is_constant() || (checked.ignored && !checked.ignored->is_constant())) return false;
    runtime::IndexRange range{checked.size.constant(), checked.dimension, checked.counts_back, {}};
    if (checked.ignored) range.ignored = checked.ignored->constant();
    return !runtime::lie_within(constants.at(static_cast<size_t>(constant.handle)), range);
  };
  const auto wants = [&](const graph::Graph& source, const ops::CheckedIndex& checked,
                         const TensorMeta& self) {
    const bool is_brought = is_on_host(source.meta(checked.index).device) && !is_on_host(self.device);
    const auto constant = std::ranges::find(source.constants, checked.index, &graph::Constant::value);
    if (constant != source.constants.end()) return is_brought && is_out_of_range(*constant, checked);
    return is_brought || config().check_indices;
  };
  return passes::check_indices(std::move(graph), wants);
}

// Compiles the halves of joint graphs. `statistics` gets the counts of those that are compiled before
// compile() returns.
autograd::GraphCompiler compiler_of_halves(const CompileOptions& options, const Dump& dump,
                                           CompileStatistics& statistics, bool compiles_ahead) {
  autograd::GraphCompiler compiler;
  compiler.compile = [&statistics, options, dump](graph::Graph graph, std::vector<at::Tensor> constants,
                                                  const std::string& stage,
                                                  const runtime::Ownership& ownership) {
    if (options.backend == Backend::Native) graph = with_index_checks(std::move(graph), constants);
    Compiled compiled =
        compile_functional(std::move(graph), std::move(constants), {}, options, dump, stage, ownership);
    statistics += compiled.statistics;
    return std::move(compiled.graph);
  };
  compiler.try_compile = [options, dump](
                             graph::Graph graph, std::vector<at::Tensor> constants, const std::string& stage,
                             const runtime::Ownership& ownership) -> std::unique_ptr<CompiledGraph> {
    return try_compile(std::move(graph), std::move(constants), options, dump, stage, ownership,
                       kBackwardPass);
  };
  if (compiles_ahead)
    compiler.begin = [options, dump](graph::Graph graph, std::vector<at::Tensor> constants,
                                     const std::string& stage, const runtime::Ownership& ownership) {
      return begin_backward(std::move(graph), std::move(constants), options, dump, stage, ownership);
    };
  if (options.backend == Backend::Native)
    compiler.optimise = [](graph::Graph graph) {
      const passes::Options options = plain_options(graph);
      return passes::run_passes(std::move(graph), options);
    };
  compiler.activation_memory_budget = options.activation_memory_budget;
  compiler.wait = options.wait;
  return compiler;
}

}  // namespace

bool is_tuned(std::string_view mode) {
  return mode == "max-autotune" || mode == "max-autotune-no-cudagraphs";
}

runtime::DeviceGraphPolicy device_graph_policy(bool graphs, std::string_view mode) {
  using runtime::DeviceGraphPolicy;
  // Of a recorded graph nobody could say which of its launches failed.
  if (!graphs || config().launch_blocking || mode == "max-autotune-no-cudagraphs")
    return DeviceGraphPolicy::Never;
  return mode == "reduce-overhead" ? DeviceGraphPolicy::AtFirstCall : DeviceGraphPolicy::AfterTwoCalls;
}

CompileStatistics statistics_of(const trace::Recording& recording) {
  CompileStatistics statistics{.graphs = 1,
                               .operators = static_cast<int64_t>(recording.graph.nodes.size()),
                               .shape_fallbacks = recording.meta_fallbacks};
  for (const std::string& op : recording.meta_fallback_names) ++statistics.shape_fallback_names[op];
  return statistics;
}

FunctionalRecording make_functional(trace::Recording recording, std::optional<autograd::Joint> joint,
                                    const CompileOptions& options, const Dump& dump) {
  show(Channel::Graph, "recorded", dump, [&] { return graph::print(recording.graph); });
  // Running operator by operator needs a functional graph only to put writes last, so that a failing run
  // changes nothing, and to find which results are views.
  const bool is_needed =
      options.backend == Backend::Native || joint ||
      std::ranges::any_of(recording.view_made, [](const auto& made) { return made.has_value(); }) ||
      std::ranges::any_of(recording.graph.nodes,
                          [](const graph::Node& node) { return node.op->is_mutating(); });
  FunctionalRecording result{std::move(recording), std::move(joint), {}};
  if (!is_needed) return result;
  Span span("functionalise");
  result.recorded = std::move(result.recording.graph);
  result.recording.graph = trace::functionalise(result.recorded, trace::default_dtype());
  if (strict()) graph::verify(result.recording.graph, true);
  return result;
}

Compiled compile(FunctionalRecording functional, std::span<const at::Tensor> weights,
                 const CompileOptions& options, const Dump& dump) {
  auto& [recording, joint, recorded] = functional;
  const sym::HintScope scope(options.hints);
  autograd::Relations relations = autograd::relations_of(recording, joint ? &*joint : nullptr, recorded,
                                                         options.backend == Backend::Eager);
  Compiled result;
  if (joint) {
    const bool compiles_ahead =
        options.backend == Backend::Native && options.wait &&
        !options.tune &&  // kernels are not timed beside others
        config().compile_ahead.value_or(backend_of(recording.graph).leaves_host_idle());
    result.graph = autograd::compile_differentiable(
        {std::move(recording), std::move(*joint)}, std::move(recorded),
        compiler_of_halves(options, dump, result.statistics, compiles_ahead));
  } else {
    if (options.backend == Backend::Native)
      recording.graph = with_index_checks(std::move(recording.graph), recording.constants);
    result = compile_functional(std::move(recording.graph), std::move(recording.constants), weights, options,
                                dump, "");
  }
  result.graph = autograd::relate(std::move(result.graph), std::move(relations));
  return result;
}

namespace {

// Calls give values of symbols alone: the plan computes the quotients that its expressions have.
void define_quotients(plan::Plan& plan, std::span<const sym::Multiple> multiples) {
  std::vector<plan::Definition> quotients;
  for (const sym::Multiple& multiple : multiples)
    quotients.push_back({sym::quotient_variable(multiple), sym::floordiv(multiple.symbol, multiple.factor)});
  plan.definitions.insert(plan.definitions.begin(), quotients.begin(), quotients.end());
}

// `caller`: of the thread that asked for the graph, which may be another one.
Planned plan_functional(graph::Graph graph, std::vector<at::Tensor> constants,
                        std::span<const at::Tensor> weights, const CompileOptions& options, const Dump& dump,
                        const std::string& stage, const runtime::Ownership& ownership, const Caller& caller) {
  const sym::HintScope scope(options.hints);
  const auto named = [&](std::string_view what) { return fmt::format("{}{}", stage, what); };
  FrozenGraph frozen;
  {
    Span span("passes");
    frozen = optimise(std::move(graph), std::move(constants), weights,
                      {options.copy_budget, options.activation_memory_budget}, options.size_values,
                      stage.empty() ? &dump : nullptr);
    if (strict()) graph::verify(frozen.graph, true);
  }
  if (caller.has_default_queue && !options.tune) {  // kernels are not timed beside others
    const c10::Device queue = runtime::device_to_torch(graph::main_device(frozen.graph));
    runtime::device_runtime(queue.type()).rehearse(frozen.graph, queue.index());
  }
  show(Channel::Graph, named("graph"), dump, [&] { return graph::print(frozen.graph); });

  const backend::Backend& device = backend_of(frozen.graph);
  loop::LoweringOptions lowering = device.lowering_options();
  lowering.deterministic = at::globalContext().deterministicAlgorithms();
  double seconds = 0;  // of what depends on sizes
  loop::Program program;
  std::vector<sym::Multiple> multiples;
  {
    Span span("lower");
    std::optional<graph::Graph> with_multiples;
    if (!options.multiples.empty()) {
      with_multiples = frozen.graph;
      multiples = graph::write_as_multiples(*with_multiples, options.multiples);
    }
    program = loop::lower(with_multiples ? *with_multiples : frozen.graph, lowering);
    if (strict()) loop::verify(program);
    seconds += span.seconds();
  }
  show(Channel::Loops, named("loops"), dump, [&] { return loop::print(program); });

  plan::Plan plan;
  std::string schedule_text;
  backend::ScheduleOptions schedule_options;
  {
    Span span("schedule");
    schedule_options.parallelism = caller.threads;
    schedule_options.fuse = options.fusion;
    schedule_options.tune = options.tune;
    if (!ownership.released_inputs.empty()) {
      for (const int32_t input : frozen.inputs)
        schedule_options.released_inputs.push_back(ownership.released_inputs[static_cast<size_t>(input)]);
      schedule_options.released_inputs.resize(frozen.graph.inputs.size(), false);
    }
    const bool wanted = log_enabled(Channel::Schedule) || dump.enabled();
    schedule_options.log = wanted ? &schedule_text : nullptr;
    plan = backend::schedule(std::move(program), device, schedule_options);
    define_quotients(plan, multiples);
    if (strict()) plan::verify(plan);
    seconds += span.seconds();
  }
  show(Channel::Schedule, named("schedule"), dump, [&] { return schedule_text; });
  show(Channel::Schedule, named("plan"), dump, [&] { return plan::print(plan); });
  for (const plan::KernelId id : plan.kernels.ids()) {
    log(Channel::Code, "{}", plan.kernels[id].source);
    if (dump.enabled())
      dump.write(fmt::format("{}{}{}", named("kernels/"), plan.kernels[id].name, device.suffix()),
                 device.standalone(plan, id));
  }
  CompileStatistics statistics;
  count(plan, statistics);
  return {Unfinished{std::move(frozen), std::move(plan), options, dump, stage, ownership, device, lowering,
                     std::move(schedule_options), seconds},
          std::move(statistics)};
}

}  // namespace

Compiled compile_functional(graph::Graph graph, std::vector<at::Tensor> constants,
                            std::span<const at::Tensor> weights, const CompileOptions& options,
                            const Dump& dump, const std::string& stage, const runtime::Ownership& ownership) {
  if (passes::reads_data(graph)) {
    graph = passes::without_unneeded_reads(graph);
    if (passes::reads_data(graph))
      return compile_stages(graph, std::move(constants), weights, options, dump, stage);
  }
  if (options.backend == Backend::Eager)
    return {std::make_unique<InterpretedGraph>(std::move(graph), std::move(constants)), {}};
  const Caller caller = caller_of(graph);
  Planned planned = plan_functional(std::move(graph), std::move(constants), weights, options, dump, stage,
                                    ownership, caller);
  Unfinished& unfinished = planned.unfinished;
  Compiled result;
  result.statistics = std::move(planned.statistics);
  if (!options.wait && !unfinished.plan.kernels.empty()) {
    std::unique_ptr<KernelRequest> request = request_kernels(unfinished);
    const auto shared = std::make_shared<Unfinished>(std::move(unfinished));
    const auto finish_later = [shared](std::shared_ptr<backend::KernelLibrary> library,
                                       double compile_seconds) {
      shared->seconds += compile_seconds;
      CompileStatistics statistics;
      std::unique_ptr<CompiledGraph> graph = finish(*shared, std::move(library), statistics);
      metrics().compiled += statistics;
      return graph;
    };
    result.graph = make_pending_graph(std::move(request), finish_later);
    return result;
  }
  result.graph = load_and_finish(unfinished, result.statistics);
  return result;
}

}  // namespace oxy::driver
