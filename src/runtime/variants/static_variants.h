// Numbers in the place of symbols, for sizes that come again and again. The plan of a graph with symbols
// serves all sizes. For a set of sizes that recurs it is made once more, with numbers, by a thread that
// nobody waits for. The next calls take both in turn, and the faster one stays.
#pragma once

#include <ATen/core/Tensor.h>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "plan/plan.h"
#include "runtime/execution/executable.h"
#include "runtime/values/tensors.h"
#include "sym/expr.h"

namespace oxy::runtime {

// When sizes are worth a variant.
struct StaticVariantPolicy {
  bool is_wanted = false;
  // After so many calls with them; 0: once the calls have taken so long that a compilation is small beside
  // it.
  int64_t calls = 0;
  std::string name;  // of the function, for the log
};

// A plan without symbols, and its kernels. Nothing: its kernels are those that there are already.
struct StaticPlan {
  plan::Plan plan;
  std::shared_ptr<backend::KernelLibrary> kernels;
};

struct StaticVariantCounts {
  std::atomic<int64_t> made = 0;     // plans with numbers
  std::atomic<int64_t> kept = 0;     // those that were faster
  std::atomic<int64_t> dropped = 0;  // those that were not, and attempts that failed
  std::atomic<int64_t> let_go = 0;   // kept ones that were not used any more
};

// Of the process.
StaticVariantCounts& static_variant_counts();

// For tests: the result of all trials to come; nothing: the times decide.
void judge_static_variants(std::optional<bool> verdict);

// Whether a kernel of the plan is given numbers that depend on symbols, and calls on its device have ended
// when they return, so that they can be timed.
bool may_have_static_variants(const plan::Plan& plan);

class StaticVariants {
 public:
  // `values[i]` for `symbols[i]`. Called by the background thread: it touches neither tensors nor Python, and
  // asks `is_unwanted` at times and gives nothing then.
  using Make = std::function<std::optional<StaticPlan>(std::span<const int64_t> values,
                                                       const std::function<bool()>& is_unwanted)>;

  // `symbolic`: the executable of the plan with symbols, which outlives this. `symbols`: all that its graph
  // mentions. `compile_seconds`: what the plan with symbols took.
  StaticVariants(Executable& symbolic, std::vector<Expr> symbols, Make make, StaticVariantPolicy policy,
                 double compile_seconds);
  ~StaticVariants();
  StaticVariants(const StaticVariants&) = delete;
  StaticVariants& operator=(const StaticVariants&) = delete;

  // Calls run(executable) with the one that is to serve these sizes now. Thread-safe; passes exceptions on.
  template <class Run>
  std::vector<at::Tensor> run(SymbolValues symbols, const Run& run) {
    Turn turn = begin(symbols);
    try {
      std::vector<at::Tensor> results = run(turn.variant ? *turn.variant : symbolic_);
      end(turn);
      return results;
    } catch (const InternalError&) {
      give_up(turn);
      throw;
    }
  }

  static constexpr size_t kMostKept = 4;
  static constexpr int64_t kMostMade = 12;       // plans, over all sizes
  static constexpr size_t kMostCounted = 16;     // sets of sizes
  static constexpr int64_t kUnusedCalls = 1000;  // of other sizes, after which a variant is let go

 private:
  struct Making;
  struct SizeSet;

  // One call.
  struct Turn {
    std::shared_ptr<SizeSet> set;
    std::shared_ptr<Executable> variant;  // null: the symbolic one runs
    bool is_timed = false;
    int64_t start = 0;  // nanoseconds
  };

  Turn begin(SymbolValues symbols);
  void end(const Turn& turn);
  void give_up(const Turn& turn);

  // With the mutex held; what `dropped` gets is to be let go of without it.
  std::shared_ptr<SizeSet> find(SymbolValues symbols, std::vector<std::shared_ptr<Executable>>& dropped);
  void forget_some(std::vector<std::shared_ptr<Executable>>& dropped);
  bool is_worth_it(const SizeSet& set) const;
  void start_making(SizeSet& set);
  void finish_trial(SizeSet& set, std::vector<std::shared_ptr<Executable>>& dropped);
  // Without the mutex.
  void adopt(const std::shared_ptr<SizeSet>& set, Making& making);
  std::string describe(const SizeSet& set) const;

  Executable& symbolic_;
  std::vector<Expr> symbols_;
  Make make_;
  StaticVariantPolicy policy_;
  double seconds_worth_it_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<SizeSet>> sets_;  // most recent last
  int64_t calls_ = 0;
  int64_t made_ = 0;
  std::shared_ptr<Making> making_;  // one at a time
};

}  // namespace oxy::runtime
