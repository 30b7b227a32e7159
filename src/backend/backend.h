// The contract between what is common and a kind of device: how it turns fused groups into kernels of a plan,
// and loads them. backend/shared asks; cpu answers, and so does every other device. The other half of the
// contract, how a device runs a plan, is runtime/device/device.h.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "loop/lowering.h"
#include "loop/program.h"
#include "plan/plan.h"

namespace oxy::backend {

struct Group;
struct Item;
using GroupId = Id<Group>;
using loop::BufferId;
using loop::StepId;

// A plan has the buffers of its program, under the same numbers.
inline plan::BufferId in_plan(BufferId id) {
  return plan::BufferId(id.number());
}

struct ScheduleOptions {
  int parallelism = 1;                // how many slices of a kernel run at once
  bool fuse = true;                   // off: one kernel a computation (for tests)
  bool all_arguments = false;         // kernels that nobody shares take integers as arguments too (for tests)
  bool tune = false;                  // kernels' shapes are timed on the device, where a backend can
  std::vector<bool> released_inputs;  // by input: nobody else holds it, it is freed after its last use
  std::string* log = nullptr;         // receives the schedule's text form if set
};

// What fusing depends on.
struct FusionCosts {
  double serial_bytes = 0;          // a kernel that moves less gains nothing from running in parallel
  double parallel_bytes = 0;        // one that moves more has to keep all that can run at once busy
  int64_t cache_bytes = 0;          // a row that passes between loops of one kernel stays below
  double iteration_bytes = 0;       // one that moves less may run few iterations, each on its own
  double launch_bytes = 0;          // kernels over the same loops that together move less run as one
  double result_launch_bytes = 0;   // the same where all that they write is kept to the end anyway
  bool needs_shared_loops = false;  // members that reduce share all their loops with the others
  bool fuses_parts = false;         // members may write different parts of one buffer
};

// Which reductions are divided into parts, so that more of them runs at once. Depends on the kind of device
// alone: results are the same bits however much runs at once.
struct SplitCosts {
  int64_t few_rows = 16;     // fewer results than these leave the device idle, where elements of a row are
  int64_t few_columns = 16;  // contiguous; and where the results are
  // The more elements are reduced, the more columns are few: one for each `elements_a_column`, at least
  // `few_columns` and at most `most_few_columns`. 0: `few_columns` always.
  int64_t elements_a_column = 0;
  int64_t most_few_columns = 0;
  // Reductions of at most `whole_elements` stay whole where there are at least `many_columns`.
  int64_t whole_elements = 0;
  int64_t many_columns = 0;
  int64_t long_reduction = 128 * 1024;  // elements, of all results, that are worth another kernel
  int64_t long_row = 0;                 // and of one result, where they are contiguous
  int64_t long_column = 0;              // and where the results are
  int64_t most_parts = 64;              // of one result
  bool splits_pairs = false;            // also means with variances, and maxima with sums of exponentials
  bool fills_device = false;            // no more parts than make the results as many as are not few
  int64_t columns_together = 1;         // results that run together, where they are contiguous
  bool masks_parts = false;             // the last part may have fewer elements than the others
  // Sums of columns that kernels of rows make on their way (reductions/row_sums.h); none where `row_programs`
  // is 0.
  int64_t row_programs = 0;       // among which the rows are divided
  int64_t long_row_programs = 0;  // the same for rows longer than `row_block`
  int64_t least_rows = 1;         // of one of them
  int64_t row_block = 1;          // elements that one takes at a time, if a row has no more
  int64_t longest_row = 0;
  // Rows that every program of a kernel makes anew (reductions/repeated_rows.h); none where `repeated_row` is
  // 0.
  int64_t repeated_row = 0;    // their elements, at most
  int64_t repeated_bytes = 0;  // what all programs of one kernel read for that, at most
};

// A fused group on its way to a kernel. Buffers are the program's.
class KernelDraft {
 public:
  virtual ~KernelDraft() = default;
  // False: everything that it would store has vanished, and there is nothing to launch.
  virtual bool has_work() const = 0;
  // Calls fn(buffer, is_written) for the memory that the kernel reads and writes.
  virtual void for_each_buffer(const std::function<void(BufferId, bool)>& fn) const = 0;
  // Lets the kernel write results over operands where every element is read before, and at the same place
  // where, it is written. Returns the pairs (operand, result) that share memory from now on. `dies(b)`: the
  // kernel is the last to use b; `is_new(b)`: the first.
  using Test = std::function<bool(BufferId)>;
  virtual std::vector<std::pair<BufferId, BufferId>> write_in_place(
      const Test& dies, const Test& is_new, const std::function<bool(BufferId, BufferId)>& same_size) = 0;
  virtual std::string print() const = 0;  // for the schedule's log
};

// By group; null where it is no kernel.
using Drafts = std::span<const std::unique_ptr<KernelDraft>>;

// Kernels that do the same in several ways.
struct WaysToTry {
  struct Way {
    std::string name;  // for the log: "in 16 parts"
    Drafts drafts;     // of a whole program: those that all ways have are not timed
  };
  std::string subject;    // likewise: "768 sums of 2048 elements"
  std::vector<Way> ways;  // the chosen one first
};

// How a draft's kernel is launched, but for the buffers of the plan: these are where the program's are
// placed.
struct PrintedLaunch {
  plan::Launch launch;            // its `buffers` are still empty
  std::vector<BufferId> buffers;  // of the program: the kernel's pointers, in its order
};

struct PrintedKernels {
  IdVector<plan::KernelId, plan::Kernel> kernels;      // each text once
  std::vector<std::optional<PrintedLaunch>> launches;  // by draft; nothing where there is no work
};

// A kernel that is launched as plan::Slices. Runs the slice [begin, end) of its outermost loop. Returns 0, or
// kIndexError if an index was out of range (nothing that the caller can see has been written then).
using SliceFunction = int (*)(void* const* buffers, const int64_t* sizes, void* scratch, int64_t begin,
                              int64_t end);
inline constexpr int kIndexError = 1;

// A kernel that is launched as plan::Grid.
struct GridFunction {
  void* handle = nullptr;     // the driver's
  int32_t threads = 0;        // of one program of the grid
  int32_t shared_bytes = 0;   // likewise
  int32_t null_pointers = 0;  // arguments that it takes behind buffers and sizes, all null
  bool starts_early = false;  // it waits itself for the launch before it, unless its plan has no other kernel
  friend bool operator==(const GridFunction&, const GridFunction&) = default;
};

using KernelFunction = std::variant<SliceFunction, GridFunction>;

// Loaded code. The functions are valid while the object lives.
class KernelLibrary {
 public:
  virtual ~KernelLibrary() = default;
  virtual KernelFunction function(size_t kernel) const = 0;  // by position in the span given to load()
};

// What takes long is done: load() takes little. Needs neither the device nor the GIL to be dropped.
class CompiledKernels {
 public:
  virtual ~CompiledKernels() = default;
  // Once, where calls run. Throws as Backend::load() does.
  virtual std::shared_ptr<KernelLibrary> load() = 0;
};

// One kind of device. Thread-safe.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view name() const = 0;  // "cpu"

  // How graphs for the device are lowered.
  virtual loop::LoweringOptions lowering_options() const { return {}; }
  virtual FusionCosts fusion_costs() const = 0;
  virtual SplitCosts split_costs() const { return {}; }
  // Whether a launch ends with a report of an index that is out of range, and has changed nothing then.
  virtual bool reports_indices() const { return true; }
  // `is_needed(buffer)`: somebody outside the group reads it.
  virtual std::unique_ptr<KernelDraft> draft(const loop::Program& program,
                                             const IdVector<StepId, Item>& items, const Group& group,
                                             const std::function<bool(BufferId)>& is_needed,
                                             const ScheduleOptions& options) const = 0;
  // Drafts are this backend's own.
  virtual PrintedKernels print(Drafts drafts, const ScheduleOptions& options) const = 0;
  // Whether fastest() times anything.
  virtual bool can_time() const { return false; }
  // The position of the fastest way of each trial: the first one's where nothing could be timed.
  virtual std::vector<size_t> fastest(std::span<const WaysToTry> trials) const {
    return std::vector<size_t>(trials.size());
  }
  // Compiles and loads every kernel, identical texts once. Unsupported if no compiler can be had or the disk
  // is full; InternalError with the diagnostics if a text does not compile.
  virtual std::shared_ptr<KernelLibrary> load(std::span<const plan::Kernel> kernels) const = 0;
  // The same in two steps. The first one may be taken by a thread that does nothing else. `kernels` are not
  // kept.
  virtual std::unique_ptr<CompiledKernels> compile(std::span<const plan::Kernel> kernels) const;
  // Whether its kernels run on another device than the host, which has time to compile others meanwhile.
  virtual bool leaves_host_idle() const { return false; }
  // The kernel as a file that can be compiled and run alone, and the name of such files' kind: ".cpp".
  virtual std::string standalone(const plan::Plan& plan, plan::KernelId kernel) const = 0;
  virtual std::string_view suffix() const = 0;
};

// What load() of a backend gave, for those whose kernels are loaded as they are compiled.
class LoadedKernels final : public CompiledKernels {
 public:
  explicit LoadedKernels(std::shared_ptr<KernelLibrary> library) : library_(std::move(library)) {}
  std::shared_ptr<KernelLibrary> load() override { return std::move(library_); }

 private:
  std::shared_ptr<KernelLibrary> library_;
};

inline std::unique_ptr<CompiledKernels> Backend::compile(std::span<const plan::Kernel> kernels) const {
  return std::make_unique<LoadedKernels>(load(kernels));
}

}  // namespace oxy::backend
