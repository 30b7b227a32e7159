#include "backend/cuda/cuda_backend.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <map>
#include <unordered_map>

#include "backend/cuda/accesses.h"
#include "backend/cuda/axes.h"
#include "backend/cuda/load/cubin.h"
#include "backend/cuda/print/kernel_printer.h"
#include "backend/cuda/tune/candidates.h"
#include "backend/cuda/tune/tuner.h"
#include "backend/nests/nest_builder.h"
#include "backend/nests/nest_draft.h"
#include "backend/shared/buffer_bytes.h"
#include "base/error.h"

namespace oxy::backend::cuda {

namespace {

// Elements that one multiprocessor reads in the time that a kernel takes to start (2 us, some 60 GB/s).
constexpr int64_t kLongProgram = 32 * 1024;

constexpr int64_t kColumnsTogether = 64;  // of one program, 128 bytes of half precision

// Of kernels that go through many rows: three a multiprocessor, or two where rows are long. That is what
// registers allow at once.
constexpr int64_t kRowPrograms = 396;
constexpr int64_t kLongRowPrograms = 264;

constexpr int kFirstWithEarlyStart = 90;  // compute capability

// Nests for a GPU: reductions stay whole, and values pass between phases in registers, whatever their number.
NestOptions nest_options(bool in_registers) {
  NestOptions options;
  options.l2_bytes = in_registers ? std::numeric_limits<int64_t>::max() / 2 : 0;
  options.lanes = std::numeric_limits<int>::max() / 2;
  options.whole_reductions = true;
  return options;
}

struct Draft final : NestDraft {
  Draft(const loop::Program& program, LoopNest nest, LaunchShape shape, bool in_registers)
      : NestDraft(program, std::move(nest)), shape(shape), in_registers(in_registers) {}

  LaunchShape shape;
  bool in_registers;  // values pass between phases in registers, and a shape must allow that
};

// Whether each program of a launch of the shape has all values between phases in registers.
bool stays_in_registers(LoopNest nest, const LaunchShape& shape) {
  if (shape.form == Form::Rows && !shape.is_persistent) return false;
  const Axes axes = make_axes(nest, shape);
  return passes_in_registers(nest, axes);
}

// Machine code that the driver has not seen yet.
class Compiled final : public CompiledKernels {
 public:
  Compiled(const Driver& driver, std::vector<NamedKernel> kernels)
      : driver_(driver), kernels_(std::move(kernels)) {}
  std::shared_ptr<KernelLibrary> load() override { return load_kernels(driver_, kernels_); }

 private:
  const Driver& driver_;
  std::vector<NamedKernel> kernels_;
};

// Whether its time depends on what its operands hold: scatters add to the places that an operand names.
bool depends_on_elements(const LoopNest& nest) {
  return std::ranges::any_of(nest.phases, [](const Phase& phase) {
    return std::ranges::any_of(
        phase.stores, [](const ElementStore& store) { return store.mode == loop::StoreMode::AtomicAdd; });
  });
}

// That may be tried for a draft. There is one, the chosen one, where a trial tells nothing.
std::vector<LaunchShape> shapes_to_try(const Draft& draft) {
  if (depends_on_elements(draft.nest)) return {draft.shape};
  std::vector<LaunchShape> shapes = candidate_shapes(draft.nest, draft.shape);
  if (draft.in_registers)
    std::erase_if(shapes, [&](const LaunchShape& shape) { return !stays_in_registers(draft.nest, shape); });
  return shapes;
}

Trial trial_of(const Draft& draft, const std::vector<LaunchShape>& shapes, EarlyStart early_start) {
  Trial trial;
  for (const LaunchShape& shape : shapes) {
    KernelText text = print_kernel(draft.nest, shape, early_start);
    const int64_t programs = std::max<int64_t>(estimate(text.programs), 1);
    trial.candidates.push_back({shape, std::move(text), programs});
  }
  const KernelText& text = trial.candidates.front().text;
  for (const ArrayId array : text.parameters) {
    const loop::Buffer& buffer = draft.program.buffers[draft.nest.arrays[array].buffer];
    trial.operands.bytes.push_back(static_cast<int64_t>(estimated_bytes(buffer)));
  }
  for (const Symbol& symbol : text.symbols) trial.operands.sizes.push_back(estimate(symbol.value));
  return trial;
}

// The launches of a program's kernels, by what tells them apart.
using LaunchesByKernel = std::map<std::string, Launches>;

LaunchesByKernel launches_of(Drafts drafts, EarlyStart early_start) {
  LaunchesByKernel found;
  for (const auto& draft : drafts) {
    if (!draft || !draft->has_work()) continue;
    const auto& own = static_cast<const Draft&>(*draft);
    Trial kernel = trial_of(own, {own.shape}, early_start);
    const Candidate& candidate = kernel.candidates.front();
    const std::string name =
        fmt::format("{} {} {} {}", candidate.text.name, candidate.programs,
                    fmt::join(kernel.operands.bytes, ","), fmt::join(kernel.operands.sizes, ","));
    const auto [launches, is_new] = found.try_emplace(name, Launches{std::move(kernel), 0});
    ++launches->second.count;
  }
  return found;
}

// Takes out what all ways launch.
void keep_differences(std::vector<LaunchesByKernel>& ways) {
  const LaunchesByKernel first = ways.front();
  for (const auto& [name, launches] : first) {
    int64_t common = launches.count;
    for (const LaunchesByKernel& way : ways) {
      const auto found = way.find(name);
      common = std::min(common, found == way.end() ? 0 : found->second.count);
    }
    if (common == 0) continue;
    for (LaunchesByKernel& way : ways) {
      const auto found = way.find(name);
      found->second.count -= common;
      if (found->second.count == 0) way.erase(found);
    }
  }
}

// The user's lines that asked for indices which the kernel checks.
void note_lines(LoopNest& nest, const loop::Program& program) {
  for (const Phase& phase : nest.phases)
    for (const NestInst& inst : phase.insts)
      if (inst.op == loop::Op::BindIndex && inst.checked &&
          program.locations.contains(inst.asked_at.location))
        nest.lines.emplace(inst.asked_at.location, program.locations[inst.asked_at.location]);
}

void note_fixed_arrays(LoopNest& nest, const loop::Program& program) {
  for (Array& array : nest.arrays)
    if (array.kind == ArrayKind::Parameter) array.is_fixed = program.buffers[array.buffer].is_fixed;
}

class CudaBackend final : public Backend {
 public:
  // Null: kernels are printed only, since `no_compiler`.
  CudaBackend(std::unique_ptr<TritonCompiler> compiler, std::optional<Choosers> choosers,
              EarlyStart early_start, std::string no_compiler = "Triton is not installed")
      : compiler_(std::move(compiler)),
        choosers_(std::move(choosers)),
        early_start_(early_start),
        no_compiler_(std::move(no_compiler)) {}

  std::string_view name() const override { return "cuda"; }
  bool leaves_host_idle() const override { return true; }

  // A GPU accumulates single precision in single, by parts, as eager does.
  loop::LoweringOptions lowering_options() const override {
    return {.accumulates_in_double = false,
            .has_scans = true,
            .chooses_among_joined = true,
            .roots_worth_a_kernel = int64_t{1} << 22};
  }

  FusionCosts fusion_costs() const override {
    // What runs in one program that could run in many is a single row, which is done before another kernel
    // starts. A row of which a part passes between loops stays in registers, or in the cache of a
    // multiprocessor. A megabyte is read while a kernel starts, and a few more until it fills the device:
    // what moves some times that much gains from running with others, such as conversions of weights that are
    // saved.
    return {.serial_bytes = 48 * 1024,
            .parallel_bytes = 256 * 1024,
            .cache_bytes = 128 * 1024,
            .iteration_bytes = 64 * 1024,
            .launch_bytes = 1024 * 1024,
            .result_launch_bytes = 24 * 1024 * 1024,
            .needs_shared_loops = true,
            .fuses_parts = true};
  }

  SplitCosts split_costs() const override {
    // Two programs of a row a multiprocessor, or one to four of 64 columns, of which each has as much to do.
    // Joining the parts costs the start of a kernel: where little is reduced, programs of few columns do
    // without.
    return {.few_rows = 2 * kMultiprocessors,
            .few_columns = kMultiprocessors * kColumnsTogether,
            .elements_a_column = kLongProgram / kColumnsTogether,
            .most_few_columns = 4 * kMultiprocessors * kColumnsTogether,
            .whole_elements = 8 * 1024 * 1024,
            .many_columns = kMultiprocessors * kFewColumns,
            .long_reduction = 64 * 1024,
            .long_row = kLongProgram,
            .long_column = kLongProgram / 64,
            .most_parts = 512,
            .splits_pairs = true,
            .fills_device = true,
            .columns_together = kColumnsTogether,
            .masks_parts = true,
            .row_programs = kRowPrograms,
            .long_row_programs = kLongRowPrograms,
            .least_rows = 8,
            .row_block = kRowBlock,
            .longest_row = 4096,
            .repeated_row = 8192,  // which stays in registers, whatever is made of it
            .repeated_bytes = 128 * 1024 * 1024};
  }

  bool reports_indices() const override { return false; }

  std::unique_ptr<KernelDraft> draft(const loop::Program& program, const IdVector<StepId, Item>& items,
                                     const Group& group, const std::function<bool(BufferId)>& is_needed,
                                     const ScheduleOptions&) const override {
    LoopNest nest = build_nest(program, items, group, is_needed, nest_options(true));
    LaunchShape shape = choose_launch_shape(nest);
    const bool in_registers = stays_in_registers(nest, shape);
    if (!in_registers) {
      nest = build_nest(program, items, group, is_needed, nest_options(false));
      shape = choose_launch_shape(nest);
    }
    note_lines(nest, program);
    note_fixed_arrays(nest, program);
    return std::make_unique<Draft>(program, std::move(nest), shape, in_registers);
  }

  bool can_time() const override { return choosers_.has_value(); }

  std::vector<size_t> fastest(std::span<const WaysToTry> trials) const override {
    std::vector<WaysTrial> asked;
    std::map<const void*, LaunchesByKernel> printed;  // by the drafts: trials have the chosen way in common
    for (const auto& [subject, ways] : trials) {
      std::vector<LaunchesByKernel> launches;
      for (const auto& [name, drafts] : ways) {
        const auto [found, is_new] = printed.try_emplace(drafts.data());
        if (is_new) found->second = launches_of(drafts, early_start_of(drafts));
        launches.push_back(found->second);
      }
      keep_differences(launches);
      WaysTrial& trial = asked.emplace_back(subject);
      for (size_t w = 0; w < ways.size(); ++w) {
        WaysTrial::Way& way = trial.ways.emplace_back(ways[w].name);
        for (auto& [name, of_kernel] : launches[w]) way.launches.push_back(std::move(of_kernel));
      }
    }
    return choosers_->ways(asked);
  }

  PrintedKernels print(Drafts drafts, const ScheduleOptions& options) const override {
    PrintedKernels result;
    result.launches.resize(drafts.size());
    std::unordered_map<std::string, plan::KernelId> kernels;  // by name
    std::vector<std::optional<KernelText>> texts =
        options.tune && choosers_ ? tuned_texts(drafts) : texts_of(drafts);
    for (size_t d = 0; d < drafts.size(); ++d) {
      if (!texts[d]) continue;
      const auto& draft = static_cast<const Draft&>(*drafts[d]);
      KernelText text = std::move(*texts[d]);
      const auto [kernel, is_new] = kernels.try_emplace(text.name, result.kernels.next_id());
      if (is_new)
        result.kernels.add({text.name, std::move(text.source), plan::Language::Triton, Device::Kind::Cuda});
      PrintedLaunch printed;
      printed.launch.kernel = kernel->second;
      for (const ArrayId array : text.parameters) printed.buffers.push_back(draft.nest.arrays[array].buffer);
      for (const Symbol& symbol : text.symbols) printed.launch.sizes.push_back(symbol.value);
      printed.launch.shape = plan::Grid{{text.programs, 1, 1}};
      result.launches[d] = std::move(printed);
    }
    return result;
  }

  std::shared_ptr<KernelLibrary> load(std::span<const plan::Kernel> kernels) const override {
    return compile(kernels)->load();
  }

  // The driver is left alone meanwhile: it may not load anything while the program records a graph.
  std::unique_ptr<CompiledKernels> compile(std::span<const plan::Kernel> kernels) const override {
    std::string missing = no_compiler_;
    const Driver* const driver = compiler_ ? find_driver(missing) : nullptr;
    if (driver == nullptr) throw Unsupported("kernels for a GPU cannot be made", missing);
    const int architecture = compute_capability(*driver, 0);
    std::vector<TritonKernel> asked;
    for (const plan::Kernel& kernel : kernels) asked.push_back({kernel.name, kernel.source, architecture});
    std::vector<CompiledKernel> compiled = compiler_->compile(asked);
    std::vector<NamedKernel> named;
    for (size_t k = 0; k < kernels.size(); ++k)
      named.push_back({kernels[k].name, std::move(compiled[k]), early_start_ == EarlyStart::Yes});
    return std::make_unique<Compiled>(*driver, std::move(named));
  }

  std::string standalone(const plan::Plan& plan, plan::KernelId kernel) const override {
    return plan.kernels.at(kernel).source;
  }
  std::string_view suffix() const override { return ".py"; }

 private:
  // Of the kernels of a plan. The first launch of a call starts normally: where there is no other, nothing
  // starts early.
  EarlyStart early_start_of(Drafts drafts) const {
    const auto with_work =
        std::ranges::count_if(drafts, [](const auto& draft) { return draft && draft->has_work(); });
    return with_work > 1 ? early_start_ : EarlyStart::No;
  }

  // By draft; nothing where there is no work.
  std::vector<std::optional<KernelText>> texts_of(Drafts drafts) const {
    const EarlyStart early_start = early_start_of(drafts);
    std::vector<std::optional<KernelText>> texts(drafts.size());
    for (size_t d = 0; d < drafts.size(); ++d) {
      if (!drafts[d] || !drafts[d]->has_work()) continue;
      const auto& draft = static_cast<const Draft&>(*drafts[d]);
      texts[d] = print_kernel(draft.nest, draft.shape, early_start);
    }
    return texts;
  }

  std::vector<std::optional<KernelText>> tuned_texts(Drafts drafts) const {
    const EarlyStart early_start = early_start_of(drafts);
    std::vector<Trial> trials;
    std::vector<size_t> drafts_of_trials;
    for (size_t d = 0; d < drafts.size(); ++d) {
      if (!drafts[d] || !drafts[d]->has_work()) continue;
      const auto& draft = static_cast<const Draft&>(*drafts[d]);
      trials.push_back(trial_of(draft, shapes_to_try(draft), early_start));
      drafts_of_trials.push_back(d);
    }
    const std::vector<size_t> chosen = choosers_->shapes(trials);
    std::vector<std::optional<KernelText>> texts(drafts.size());
    for (size_t t = 0; t < trials.size(); ++t)
      texts[drafts_of_trials[t]] = std::move(trials[t].candidates[chosen[t]].text);
    return texts;
  }

  std::unique_ptr<TritonCompiler> compiler_;
  std::optional<Choosers> choosers_;  // nothing where nothing can be timed
  EarlyStart early_start_;
  std::string no_compiler_;
};

}  // namespace

std::unique_ptr<Backend> make_backend(std::optional<TritonOptions> triton, Stores stores) {
  if (!triton) return make_printer(std::nullopt);
  if (std::string unfit = why_unfit(triton->version); !unfit.empty())
    return std::make_unique<CudaBackend>(nullptr, std::nullopt, EarlyStart::No, std::move(unfit));
  auto compiler = std::make_unique<TritonCompiler>(std::move(*triton), std::move(stores.kernels));
  std::string missing;
  const Driver* const driver = find_driver(missing);
  if (driver == nullptr)
    return std::make_unique<CudaBackend>(std::move(compiler), std::nullopt, EarlyStart::No);
  const auto early_start =
      compute_capability(*driver, 0) >= kFirstWithEarlyStart ? EarlyStart::Yes : EarlyStart::No;
  const auto tuner = std::make_shared<Tuner>(*driver, *compiler, std::move(stores.choices));
  Choosers choosers{
      .shapes = [tuner,
                 driver](auto trials) { return tuner->fastest(trials, compute_capability(*driver, 0)); },
      .ways = [tuner,
               driver](auto trials) { return tuner->fastest_ways(trials, compute_capability(*driver, 0)); }};
  return std::make_unique<CudaBackend>(std::move(compiler), std::move(choosers), early_start);
}

std::unique_ptr<Backend> make_printer(std::optional<Choosers> choosers, EarlyStart early_start) {
  return std::make_unique<CudaBackend>(nullptr, std::move(choosers), early_start);
}

}  // namespace oxy::backend::cuda
