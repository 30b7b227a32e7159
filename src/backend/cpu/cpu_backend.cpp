#include "backend/cpu/cpu_backend.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <unordered_map>

#include "backend/cpu/jit/jit.h"
#include "backend/cpu/print/kernel_printer.h"
#include "backend/cpu/print/standalone.h"
#include "backend/cpu/split.h"
#include "backend/cpu/tile.h"
#include "backend/nests/long_formulas.h"
#include "backend/nests/nest_builder.h"
#include "backend/nests/nest_draft.h"
#include "backend/nests/size_arguments.h"

namespace oxy::backend::cpu {

namespace {

constexpr double kSliceNanoseconds = 20000;  // work that pays for waking a thread
constexpr size_t kFewestAlike = 4;           // different kernels that are worth making one of

// A nest with its text, and the integers that its kernel is given at a launch.
struct Printed {
  const LoopNest* nest = nullptr;
  std::vector<Symbol> symbols;
  KernelText text;
};

PrintedLaunch launch_of(const Printed& printed, plan::KernelId kernel, const Target& target) {
  const LoopNest& nest = *printed.nest;
  PrintedLaunch result;
  for (const ArrayId array : printed.text.parameters) result.buffers.push_back(nest.arrays[array].buffer);
  plan::Launch& launch = result.launch;
  launch.kernel = kernel;
  for (const Symbol& symbol : printed.symbols) launch.sizes.push_back(symbol.value);
  plan::Slices slices{.extent = launch_extent(nest), .scratch_bytes = scratch_bytes(nest)};
  const double grain = std::ceil(kSliceNanoseconds / nanoseconds_per_iteration(nest));
  slices.grain = nest.serial ? std::numeric_limits<int64_t>::max() / 2
                             : std::max<int64_t>(1, static_cast<int64_t>(std::min(grain, 1e15)));
  if (nest.axis == VectorAxis::Outer && nest.outer.size() == 1 && !nest.serial) {
    const int64_t lanes = target.vector_bytes / 4;
    slices.grain = (slices.grain + lanes - 1) / lanes * lanes;
  }
  launch.shape = slices;
  return result;
}

// Nests that differ in integers alone are one kernel, which takes these as arguments, if they are several.
// Else each keeps them in its text, where the compiler sees them. `all_arguments`: they always are.
std::vector<Printed> print_nests(const std::vector<const LoopNest*>& nests, const Target& target,
                                 bool all_arguments) {
  std::vector<Printed> printed;
  std::map<std::string, std::vector<size_t>> alike;  // by the name of the kernel with arguments
  std::vector<LoopNest> named;                       // by nest
  for (const LoopNest* nest : nests) name_long_formulas(named.emplace_back(*nest));
  for (size_t n = 0; n < nests.size(); ++n) {
    const LoopNest* const nest = nests[n];
    LoopNest general = with_size_arguments(named[n], lane_count(*nest, target));
    KernelText text = print_kernel(general, target);
    alike[text.name].push_back(printed.size());
    printed.push_back({nest, std::move(general.symbols), std::move(text)});
  }
  const auto same_value = [](const Symbol& a, const Symbol& b) { return a.value == b.value; };
  const auto same_values = [&](size_t a, size_t b) {
    return std::ranges::equal(printed[a].symbols, printed[b].symbols, same_value);
  };
  for (const auto& [name, members] : alike) {
    std::vector<size_t> different;  // one nest of each list of values
    for (const size_t n : members)
      if (different.size() < kFewestAlike &&
          std::ranges::none_of(different, [&](size_t other) { return same_values(n, other); }))
        different.push_back(n);
    if (different.size() >= kFewestAlike || all_arguments) continue;
    for (const size_t n : members) printed[n] = {nests[n], named[n].symbols, print_kernel(named[n], target)};
  }
  return printed;
}

class CpuBackend final : public Backend {
 public:
  explicit CpuBackend(const Target& target) : target_(target) {}

  std::string_view name() const override { return "cpu"; }

  FusionCosts fusion_costs() const override {
    return {.serial_bytes = 64 * 1024, .parallel_bytes = 512 * 1024, .cache_bytes = target_.l2_bytes / 2};
  }

  std::unique_ptr<KernelDraft> draft(const loop::Program& program, const IdVector<StepId, Item>& items,
                                     const Group& group, const std::function<bool(BufferId)>& is_needed,
                                     const ScheduleOptions& options) const override {
    LoopNest nest = build_nest(program, items, group, is_needed,
                               {target_.l1_bytes, target_.l2_bytes, target_.vector_bytes / 4});
    keep_order(nest);
    tile_transposes(nest);
    split_for_threads(nest, options.parallelism);
    return std::make_unique<NestDraft>(program, std::move(nest));
  }

  PrintedKernels print(std::span<const std::unique_ptr<KernelDraft>> drafts,
                       const ScheduleOptions& options) const override {
    PrintedKernels result;
    result.launches.resize(drafts.size());
    std::vector<const LoopNest*> nests;
    std::vector<size_t> places;
    for (size_t d = 0; d < drafts.size(); ++d)
      if (drafts[d] && drafts[d]->has_work()) {
        nests.push_back(&static_cast<const NestDraft&>(*drafts[d]).nest);
        places.push_back(d);
      }
    std::unordered_map<std::string, plan::KernelId> kernels;  // by name
    std::vector<Printed> printed = print_nests(nests, target_, options.all_arguments);
    for (size_t n = 0; n < printed.size(); ++n) {
      KernelText& text = printed[n].text;
      const auto [kernel, is_new] = kernels.try_emplace(text.name, result.kernels.next_id());
      if (is_new) result.kernels.add({text.name, std::move(text.source)});
      result.launches[places[n]] = launch_of(printed[n], kernel->second, target_);
    }
    return result;
  }

  std::shared_ptr<KernelLibrary> load(std::span<const plan::Kernel> kernels) const override {
    return default_compiler().compile(kernels);
  }

  std::string standalone(const plan::Plan& plan, plan::KernelId kernel) const override {
    return cpu::standalone(plan, kernel);
  }
  std::string_view suffix() const override { return ".cpp"; }

 private:
  Target target_;
};

}  // namespace

std::unique_ptr<Backend> make_backend(const Target& target) {
  return std::make_unique<CpuBackend>(target);
}

}  // namespace oxy::backend::cpu
