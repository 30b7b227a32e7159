#include "runtime/variants/static_variants.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <set>
#include <utility>

#include "base/background.h"
#include "base/config.h"
#include "base/error.h"
#include "base/log.h"
#include "plan/step_buffers.h"
#include "runtime/variants/trial.h"
#include "torch_api/error_text.h"

namespace oxy::runtime {

namespace {

// A variant is made when calls with its sizes have taken as much time as so many compilations: most gain a
// few per cent, and many nothing.
constexpr double kCompilations = 20;
constexpr double kLeastCompileSeconds = 0.05;  // kernels that were known already took no time
constexpr int64_t kFewestCalls = 32;
constexpr int64_t kCallsBetweenLooks = 256;  // for variants that are not used

constexpr int kNoVerdict = -1;
std::atomic<int> verdict_of_tests = kNoVerdict;

int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

StaticVariantCounts& static_variant_counts() {
  static StaticVariantCounts* const counts = new StaticVariantCounts;  // calls may end after static objects
  return *counts;
}

void judge_static_variants(std::optional<bool> verdict) {
  verdict_of_tests = verdict ? static_cast<int>(*verdict) : kNoVerdict;
}

bool may_have_static_variants(const plan::Plan& plan) {
  // A call on another device gives work to a queue. Its time is not that of the work, and work that is
  // recorded and replayed is recorded for each set of sizes as it is.
  if (!std::ranges::all_of(plan.buffers, [](const plan::Buffer& b) { return is_on_host(b.device); }))
    return false;
  return std::ranges::any_of(plan.steps, [](const plan::Step& step) {
    const auto* const launch = std::get_if<plan::Launch>(&step);
    return launch != nullptr &&
           !std::ranges::all_of(launch->sizes, [](const Expr& size) { return size.is_constant(); });
  });
}

// What the background thread and the calls share. The thread writes, then sets `is_ready`.
struct StaticVariants::Making {
  std::vector<int64_t> values;
  std::atomic<bool> is_unwanted = false;
  std::atomic<bool> is_ready = false;
  std::optional<StaticPlan> plan;
  std::exception_ptr problem;
  double seconds = 0;
};

struct StaticVariants::SizeSet {
  enum class Phase : uint8_t {
    Counted,  // it is not known yet whether it recurs
    BeingMade,
    Tried,    // calls take both plans in turn
    Kept,     // calls take the variant
    Dropped,  // calls take the plan with symbols, for ever
  };
  std::vector<int64_t> values;  // of symbols_
  Phase phase = Phase::Counted;
  int64_t calls = 0;
  double seconds = 0;  // of these calls
  int64_t last_call = 0;
  std::shared_ptr<Making> making;       // BeingMade: until a call adopts the result
  std::shared_ptr<Executable> variant;  // Tried, Kept
  Trial trial;

  void drop(std::vector<std::shared_ptr<Executable>>& dropped) {
    phase = Phase::Dropped;
    making.reset();
    if (variant) dropped.push_back(std::move(variant));
    variant.reset();
    ++static_variant_counts().dropped;
  }
};

StaticVariants::StaticVariants(Executable& symbolic, std::vector<Expr> symbols, Make make,
                               StaticVariantPolicy policy, double compile_seconds)
    : symbolic_(symbolic),
      symbols_(std::move(symbols)),
      make_(std::move(make)),
      policy_(std::move(policy)),
      seconds_worth_it_(kCompilations * std::max(compile_seconds, kLeastCompileSeconds)) {}

StaticVariants::~StaticVariants() {
  if (making_) making_->is_unwanted = true;
}

StaticVariants::Turn StaticVariants::begin(SymbolValues symbols) {
  using enum SizeSet::Phase;
  std::vector<std::shared_ptr<Executable>> dropped;
  Turn turn;
  {
    std::unique_lock lock(mutex_);
    ++calls_;
    turn.set = find(symbols, dropped);
    SizeSet& set = *turn.set;
    set.last_call = calls_;
    if (set.phase == BeingMade && set.making && set.making->is_ready) {
      const std::shared_ptr<Making> ready = std::exchange(set.making, nullptr);
      making_.reset();
      lock.unlock();
      adopt(turn.set, *ready);
      lock.lock();
    }
    turn.is_timed = set.phase == Tried || (set.phase == Counted && policy_.calls == 0);
    if (set.phase == Kept || (set.phase == Tried && set.trial.next() == Trial::Way::New))
      turn.variant = set.variant;
  }
  if (turn.is_timed) turn.start = now();
  return turn;
}

void StaticVariants::end(const Turn& turn) {
  using enum SizeSet::Phase;
  const double seconds = turn.is_timed ? static_cast<double>(now() - turn.start) * 1e-9 : 0;
  std::vector<std::shared_ptr<Executable>> dropped;
  const std::scoped_lock lock(mutex_);
  SizeSet& set = *turn.set;
  if (set.phase == Counted) {
    ++set.calls;
    set.seconds += seconds;
    if (is_worth_it(set)) start_making(set);
  } else if (set.phase == Tried && turn.is_timed) {
    set.trial.add(turn.variant ? Trial::Way::New : Trial::Way::Old, seconds);
    if (set.trial.is_over()) finish_trial(set, dropped);
  }
}

void StaticVariants::give_up(const Turn& turn) {
  std::vector<std::shared_ptr<Executable>> dropped;
  const std::scoped_lock lock(mutex_);
  if (turn.variant && turn.set->variant == turn.variant) turn.set->drop(dropped);
}

std::shared_ptr<StaticVariants::SizeSet> StaticVariants::find(
    SymbolValues symbols, std::vector<std::shared_ptr<Executable>>& dropped) {
  const auto fits = [&](const std::shared_ptr<SizeSet>& set) {
    for (size_t i = 0; i < symbols_.size(); ++i)
      if (set->values[i] != symbols[static_cast<size_t>(symbols_[i].variable_id())]) return false;
    return true;
  };
  if (calls_ % kCallsBetweenLooks == 0) forget_some(dropped);
  if (!sets_.empty() && fits(sets_.back())) return sets_.back();
  if (const auto it = std::ranges::find_if(sets_, fits); it != sets_.end()) {
    std::rotate(it, it + 1, sets_.end());
    return sets_.back();
  }
  auto set = std::make_shared<SizeSet>();
  for (const Expr& symbol : symbols_) {
    const auto id = static_cast<size_t>(symbol.variable_id());
    check(id < symbols.size(), "a symbol of a graph has no value");
    set->values.push_back(symbols[id]);
  }
  set->last_call = calls_;
  sets_.push_back(std::move(set));
  forget_some(dropped);
  return sets_.back();
}

void StaticVariants::forget_some(std::vector<std::shared_ptr<Executable>>& dropped) {
  using enum SizeSet::Phase;
  const auto in_phase = [&](SizeSet::Phase phase) {
    return static_cast<size_t>(
        std::ranges::count_if(sets_, [&](const auto& set) { return set->phase == phase; }));
  };
  const auto let_go = [&](SizeSet& set) {
    if (set.phase == BeingMade && set.making) {
      set.making->is_unwanted = true;
      making_.reset();
    }
    if (set.phase == Kept) {
      ++static_variant_counts().let_go;
      log(Channel::Dynamic, "{}: the variant is let go, as it was not used lately", describe(set));
    }
    if (set.variant) dropped.push_back(std::move(set.variant));
    // Calls that are running may still end for it.
    set.phase = Dropped;
    set.variant.reset();
  };
  std::erase_if(sets_, [&](const std::shared_ptr<SizeSet>& set) {
    const bool holds_memory = set->phase == BeingMade || set->phase == Tried || set->phase == Kept;
    if (!holds_memory || calls_ - set->last_call < kUnusedCalls) return false;
    let_go(*set);
    return true;
  });
  const auto forget_first = [&](SizeSet::Phase phase) {
    const auto first = std::ranges::find_if(sets_, [&](const auto& set) { return set->phase == phase; });
    let_go(**first);
    sets_.erase(first);
  };
  while (in_phase(Kept) > kMostKept) forget_first(Kept);
  while (in_phase(Counted) > kMostCounted) forget_first(Counted);
}

bool StaticVariants::is_worth_it(const SizeSet& set) const {
  if (making_ || made_ == kMostMade) return false;
  if (policy_.calls > 0) return set.calls >= policy_.calls;
  return set.calls >= kFewestCalls && set.seconds >= seconds_worth_it_;
}

void StaticVariants::start_making(SizeSet& set) {
  ++made_;
  set.phase = SizeSet::Phase::BeingMade;
  set.making = making_ = std::make_shared<Making>();
  making_->values = set.values;
  background::submit([making = making_, make = make_] {
    const auto is_unwanted = [&] { return making->is_unwanted || background::is_ending(); };
    const int64_t start = now();
    try {
      if (!is_unwanted()) making->plan = make(making->values, is_unwanted);
    } catch (...) {
      making->problem = std::current_exception();
    }
    making->seconds = static_cast<double>(now() - start) * 1e-9;
    making->is_ready = true;
  });
}

void StaticVariants::adopt(const std::shared_ptr<SizeSet>& set, Making& making) {
  std::shared_ptr<Executable> variant;
  size_t kernels = 0;
  std::string why_not = "its kernels are those that serve all sizes";
  std::exception_ptr bug;
  try {
    if (making.problem) std::rethrow_exception(making.problem);
    if (making.plan) {
      // Inputs that a call does not own are not read while it runs (CompiledGraph::reads).
      const std::set<int32_t> read = plan::inputs_read(symbolic_.plan());
      check(std::ranges::includes(read, plan::inputs_read(making.plan->plan)),
            "a plan with numbers reads an input that the one with symbols does not read");
      kernels = making.plan->plan.kernels.size();
      variant = symbolic_.with_plan(std::move(making.plan->plan), std::move(making.plan->kernels));
    }
  } catch (const Unsupported& unsupported) {
    why_not = unsupported.what();
  } catch (const std::exception& error) {
    why_not = torch_api::error_text(error);
    bug = std::current_exception();
  }
  {
    std::vector<std::shared_ptr<Executable>> dropped;
    const std::scoped_lock lock(mutex_);
    if (set->phase != SizeSet::Phase::BeingMade) return;  // it was let go meanwhile
    if (variant) {
      set->variant = std::move(variant);
      set->phase = SizeSet::Phase::Tried;
      ++static_variant_counts().made;
      log(Channel::Dynamic, "{}: a variant with these numbers was made in {:.2f} s, {} kernels",
          describe(*set), making.seconds, kernels);
    } else {
      set->drop(dropped);
      log(Channel::Dynamic, "{}: no variant: {}", describe(*set), why_not);
    }
  }
  if (!bug) return;
  if (strict()) std::rethrow_exception(bug);
  warn(fmt::format("internal error, no variant for sizes that recur: {}\nPlease report it.", why_not));
}

void StaticVariants::finish_trial(SizeSet& set, std::vector<std::shared_ptr<Executable>>& dropped) {
  const int given = verdict_of_tests;
  const bool is_kept = given == kNoVerdict ? set.trial.is_new_faster() : given != 0;
  log(Channel::Dynamic, "{}: the variant is {}: {}", describe(set), is_kept ? "kept" : "dropped",
      set.trial.describe());
  if (!is_kept) {
    set.drop(dropped);
    return;
  }
  set.phase = SizeSet::Phase::Kept;
  ++static_variant_counts().kept;
  forget_some(dropped);
}

std::string StaticVariants::describe(const SizeSet& set) const {
  std::string text = policy_.name;
  for (size_t i = 0; i < symbols_.size(); ++i)
    text += fmt::format("{} {} = {}", i == 0 ? "" : ",", symbols_[i].variable_name(), set.values[i]);
  return text;
}

}  // namespace oxy::runtime
