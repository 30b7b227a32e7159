#include "runtime/execution/executable.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_copy.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <map>
#include <mutex>
#include <utility>

#include "base/error.h"
#include "runtime/device/generators.h"
#include "runtime/execution/frame.h"
#include "runtime/execution/prepare.h"
#include "runtime/execution/replay_memory.h"
#include "runtime/execution/replayed_steps.h"
#include "runtime/execution/specialise.h"
#include "runtime/execution/steps.h"
#include "torch_api/error_text.h"

namespace oxy::runtime {

namespace {

constexpr int64_t kCallsBeforeGraphs = 2;
// To record the steps. Each that fails finds at least one step that cannot be replayed.
constexpr int64_t kMostAttempts = 16;

// What was recorded lies below autograd and autocast.
const c10::DispatchKeySet kBelowRecorded =
    c10::autograd_dispatch_keyset_with_ADInplaceOrView | c10::autocast_dispatch_keyset;

// A plan for one set of sizes, with the frames of its calls.
class Variant {
 public:
  Variant(Preparation preparation, std::span<const at::Tensor> constants, DeviceGraphPolicy policy)
      : owned_(std::move(preparation.plan)),
        plan_(*owned_),
        numbers_(std::move(preparation.numbers)),
        need_(plan_.runtime->arenas().announce(plan_.arena_bytes)),
        constants_(constants),
        // The steps are the same for all sizes, and so is this.
        policy_(plan_.runtime->makes_graphs() && plan_.devices.size() == 1 &&
                        !spans_to_replay(plan_, {}).empty()
                    ? policy
                    : DeviceGraphPolicy::Never) {
    if (policy != policy_ && plan_.devices.size() > 1)
      why_no_graphs_ = fmt::format("the region is on {}", fmt::join(names_of_devices(), " and "));
    expect_graphs();
  }

  // For the sizes that `symbolic` evaluated last, from which the plan was prepared. No call runs.
  void resize(SymbolicPlan& symbolic) {
    const int64_t arena_bytes = plan_.arena_bytes;
    write(numbers_, symbolic, *owned_);
    if (plan_.arena_bytes != arena_bytes) need_ = plan_.runtime->arenas().announce(plan_.arena_bytes);
    const std::scoped_lock lock(mutex_);
    std::erase_if(idle_, [](const Worker& worker) { return worker.replayed != nullptr; });
    announced_ = nullptr;
    for (const Worker& worker : idle_) worker.frame->refit();
    expect_graphs();
  }

  std::vector<at::Tensor> run(std::span<const at::Tensor> inputs, std::vector<at::Tensor>* owned) {
    if (owned != nullptr) plan_.runtime->arenas().drop_idle_above(plan_.arena_bytes);
    Lease lease(*this);
    Frame& frame = *lease.worker.frame;
    std::vector<at::Tensor> outputs(plan_.outputs.size());
    std::vector<at::Tensor> copies;
    // What may raise comes before what cannot be undone.
    for (size_t i = 0; i < outputs.size(); ++i)
      if (plan_.outputs[i].kind == graph::OutputKind::InputAlias) {
        const at::Tensor& input = inputs[static_cast<size_t>(plan_.outputs[i].alias)];
        outputs[i] = alias_of(without_history(input), plan_.outputs[i].spec);
      }
    KeepsGenerators generators(plan_.random_devices);
    {
      const c10::impl::ExcludeDispatchKeyGuard below(kBelowRecorded);
      frame.begin_call(inputs, lease.arena(), lease.parts_of_inputs());
      run_steps_of(lease, owned);
      frame.end_launches();
    }
    bool is_changed = std::ranges::any_of(plan_.mutations, &PreparedMutation::is_done);
    try {
      take_results(frame, outputs, copies);
      for (size_t i = 0; i < outputs.size(); ++i)
        if (plan_.outputs[i].kind == graph::OutputKind::OutputAlias)
          outputs[i] = alias_of(outputs[static_cast<size_t>(plan_.outputs[i].alias)], plan_.outputs[i].spec);
      generators.advance();
      is_changed = is_changed || !plan_.mutations.empty();
      perform_mutations(inputs, frame, copies);
    } catch (const c10::AcceleratorError&) {
      throw;
    } catch (const std::exception& error) {
      if (!is_changed) throw;
      throw FailedAfterRun(torch_api::error_text(error));
    }
    return outputs;
  }

  bool only_replays() const { return only_replays_.load(std::memory_order_relaxed); }

  int64_t bytes() const {
    const std::scoped_lock lock(mutex_);
    int64_t total = plan_.arena_bytes;
    for (const Worker& worker : idle_) total += worker.frame->held_bytes();
    return total;
  }

  void add_to(DeviceGraphState& state) const {
    const std::scoped_lock lock(mutex_);
    for (const Worker& worker : idle_) {
      if (!worker.replayed || worker.replayed->span_count() == 0) continue;
      state.spans += worker.replayed->span_count();
      const Arena& arena = worker.replayed->arena();
      if (arena.bytes > 0) state.arenas.emplace(arena.memory.get(), arena.bytes);
    }
    for (const auto& [step, reason] : unreplayable_) state.reasons.push_back(reason);
    if (!why_no_graphs_.empty()) state.reasons.push_back(why_no_graphs_);
  }

 private:
  std::vector<std::string> names_of_devices() const {
    std::vector<std::string> names;
    for (const c10::Device& device : plan_.devices) names.push_back(device.str());
    return names;
  }

  void expect_graphs() {
    if (policy_ == DeviceGraphPolicy::Never) return;
    calls_until_graphs_ = policy_ == DeviceGraphPolicy::AtFirstCall ? 0 : kCallsBeforeGraphs;
    attempts_left_ = kMostAttempts;
  }

  // What one call at a time works with. `replayed`: null until its calls replay.
  struct Worker {
    std::unique_ptr<Frame> frame;
    std::unique_ptr<ReplayedSteps> replayed;
  };

  struct Lease {
    explicit Lease(Variant& variant) : owner(variant), maker(variant.maker_of_this_call()) {
      if (maker) in_use = std::unique_lock(maker->in_use(), std::try_to_lock);
      if (!in_use.owns_lock()) maker = nullptr;
      worker = variant.take(maker.get());
      if (!maker || worker.replayed) return;
      try {
        fresh = std::make_unique<ReplayedSteps>(variant.plan_, maker);
      } catch (const c10::OutOfMemoryError&) {
        variant.give_up_graphs();
        maker = nullptr;
        in_use.unlock();
      }
    }
    ~Lease() {
      worker.frame->end_call();
      owner.give_back(std::move(worker));
    }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    const Arena* arena() const {
      if (!maker) return nullptr;
      return &(worker.replayed ? worker.replayed : fresh)->arena();
    }

    Frame::PartsOfInputs parts_of_inputs() const {
      const bool replays = maker && worker.replayed && !worker.replayed->needs_parts_of_inputs();
      return replays ? Frame::PartsOfInputs::WhenAsked : Frame::PartsOfInputs::Now;
    }

    Variant& owner;
    std::shared_ptr<DeviceGraphMaker> maker;  // null: the call neither records nor replays
    std::unique_lock<std::mutex> in_use;
    Worker worker;
    std::unique_ptr<ReplayedSteps> fresh;  // to be recorded by this call
  };

  std::shared_ptr<DeviceGraphMaker> maker_of_this_call() {
    if (attempts_left_.load(std::memory_order_relaxed) == 0) return nullptr;
    if (calls_until_graphs_.load(std::memory_order_relaxed) > 0) {
      if (calls_until_graphs_.fetch_sub(1, std::memory_order_relaxed) == 1) announce_recording();
      return nullptr;
    }
    return plan_.runtime->graph_maker(plan_.device().index());
  }

  // Forward and backward passes share an arena, and the one that needs more is often recorded later. So each
  // plan announces its need one call before it is recorded.
  void announce_recording() {
    const std::shared_ptr<DeviceGraphMaker> maker = plan_.runtime->graph_maker(plan_.device().index());
    if (maker == nullptr) return;
    std::shared_ptr<void> announced = maker->announce(replay_memory(plan_).arena_bytes);
    const std::scoped_lock lock(mutex_);
    announced_ = std::move(announced);
  }

  void give_up_graphs() {
    attempts_left_.store(0, std::memory_order_relaxed);
    const std::scoped_lock lock(mutex_);
    announced_ = nullptr;
    why_no_graphs_ = "there is no memory for graphs";
  }

  void run_steps_of(Lease& lease, std::vector<at::Tensor>* owned) {
    Frame& frame = *lease.worker.frame;
    const bool replays = lease.maker && lease.worker.replayed && frame.uses_inputs_as_given();
    only_replays_.store(replays && lease.worker.replayed->is_all(), std::memory_order_relaxed);
    if (lease.fresh && frame.uses_inputs_as_given()) {
      UnreplayableSteps unreplayable;
      {
        const std::scoped_lock lock(mutex_);
        unreplayable = unreplayable_;
      }
      if (lease.fresh->record(frame, owned, unreplayable)) {
        lease.worker.replayed = std::move(lease.fresh);
        return;
      }
      const bool was_last = attempts_left_.fetch_sub(1, std::memory_order_relaxed) == 1;
      const std::scoped_lock lock(mutex_);
      unreplayable_.merge(unreplayable);
      if (was_last) announced_ = nullptr;
    } else if (replays) {
      lease.worker.replayed->run(frame, owned);
    } else {
      frame.make_parts_of_inputs();
      run_steps(plan_, {0, plan_.steps.size()}, frame, owned);
    }
  }

  // One that replays on the maker's stream if there is one, else one that does not replay.
  Worker take(const DeviceGraphMaker* maker) {
    {
      const std::scoped_lock lock(mutex_);
      auto found = idle_.end();
      for (auto it = idle_.begin(); it != idle_.end(); ++it) {
        if (maker && it->replayed && &it->replayed->maker() == maker) {
          found = it;
          break;
        }
        if (!it->replayed) found = it;
      }
      if (found != idle_.end()) {
        Worker worker = std::move(*found);
        idle_.erase(found);
        return worker;
      }
    }
    return Worker{std::make_unique<Frame>(plan_, constants_), nullptr};
  }

  void give_back(Worker worker) {
    const std::scoped_lock lock(mutex_);
    idle_.push_back(std::move(worker));
  }

  // `copies`: the values of those mutations that need one, in order.
  void perform_mutations(std::span<const at::Tensor> inputs, Frame& frame,
                         std::span<const at::Tensor> copies) const {
    if (plan_.mutations.empty()) return;
    const at::NoGradGuard no_grad;  // writes that take part in autograd are not captured
    auto copy = copies.begin();
    using TypeAndDevice = std::pair<c10::ScalarType, c10::DeviceIndex>;
    std::map<TypeAndDevice, std::pair<std::vector<at::Tensor>, std::vector<at::Tensor>>> together;
    for (const PreparedMutation& mutation : plan_.mutations) {
      const at::Tensor& input = inputs[static_cast<size_t>(mutation.input)];
      if (!mutation.is_done) {
        const at::Tensor& target = mutation.is_seen || input.is_inference() ? input : input.variable_data();
        const at::Tensor& value = mutation.copy ? *copy++ : frame.tensors()[mutation.slot];
        if (is_on_host(target) || target.scalar_type() != value.scalar_type() ||
            target.device() != value.device()) {
          target.copy_(value);
          continue;
        }
        auto& [targets, values] = together[{target.scalar_type(), target.device().index()}];
        targets.push_back(target);
        values.push_back(value);
      } else if (mutation.is_seen && !input.is_inference()) {
        input.unsafeGetTensorImpl()->bump_version();
      }
    }
    // One launch for many: batch norms of a model have two small tensors each.
    for (auto& [key, pair] : together) at::_foreach_copy_(pair.first, pair.second);
  }

  // The outputs that are values, and copies of what mutations write.
  void take_results(Frame& frame, std::vector<at::Tensor>& outputs, std::vector<at::Tensor>& copies) const {
    const c10::impl::ExcludeDispatchKeyGuard below(kBelowRecorded);
    take_values(frame, outputs);
    for (const PreparedMutation& mutation : plan_.mutations)
      if (mutation.copy) copies.push_back(frame.tensors()[mutation.slot].clone());
  }

  void take_values(Frame& frame, std::vector<at::Tensor>& outputs) const {
    for (size_t i = 0; i < outputs.size(); ++i) {
      const PreparedOutput& output = plan_.outputs[i];
      if (output.kind != graph::OutputKind::Value) continue;
      const at::Tensor& tensor = frame.tensors()[output.slot];
      if (output.copy) {
        outputs[i] = empty_tensor({tensor.scalar_type(), tensor.sizes().vec(), tensor.strides().vec(), 0},
                                  tensor.device());
        outputs[i].copy_(tensor);
      } else {
        outputs[i] = tensor;
      }
    }
  }

  std::unique_ptr<PreparedPlan> owned_;
  const PreparedPlan& plan_;
  PlanNumbers numbers_;
  std::shared_ptr<void> need_;  // while the plan lives, arenas of its size are kept
  std::span<const at::Tensor> constants_;
  DeviceGraphPolicy policy_;
  std::string why_no_graphs_;
  std::atomic<int64_t> calls_until_graphs_ = 0;
  std::atomic<bool> only_replays_ = false;  // the last call
  std::atomic<int64_t> attempts_left_ = 0;  // to record the steps; 0: calls neither record nor replay
  mutable std::mutex mutex_;
  std::shared_ptr<void> announced_;  // DeviceGraphMaker::announce()
  std::vector<Worker> idle_;
  UnreplayableSteps unreplayable_;
};

// Sizes that changed on every call would otherwise keep an arena each.
constexpr size_t kMostVariants = 8;
// Of sets of sizes that were served last and have no variant now.
constexpr size_t kMostRemembered = 16;

}  // namespace

struct Executable::Impl {
  plan::Plan plan;
  std::shared_ptr<backend::KernelLibrary> kernels;
  std::vector<at::Tensor> constants;
  ExecutableOptions options;
  std::unique_ptr<SymbolicPlan> symbolic;
  std::shared_ptr<Variant> fixed;          // of a plan without symbols
  std::atomic<bool> only_replays = false;  // the last call of a plan with symbols
  std::mutex mutex;
  struct Sized {
    std::vector<int64_t> values;
    std::shared_ptr<Variant> variant;
  };
  std::vector<Sized> variants;                   // most recent last
  std::deque<std::vector<int64_t>> without_one;  // sets of sizes that lost their variant, most recent last

  std::shared_ptr<Variant> make_variant() {
    return std::make_shared<Variant>(
        prepare(*symbolic, kernels.get(), constants.size(), options.visible_outputs), constants,
        options.graphs);
  }

  void forget(std::vector<Sized>::iterator least) {
    without_one.push_back(std::move(least->values));
    if (without_one.size() > kMostRemembered) without_one.pop_front();
    variants.erase(least);
  }

  // Sizes that come again get a variant of their own; others take over the one that was used least recently.
  std::shared_ptr<Variant> variant_for_new(std::vector<int64_t> values) {
    if (!symbolic->evaluate(values)) throw LeftToEager();
    const auto known = std::ranges::find(without_one, values);
    const bool comes_again = known != without_one.end();
    if (comes_again) without_one.erase(known);
    const auto idle =
        std::ranges::find_if(variants, [](const Sized& sized) { return sized.variant.use_count() == 1; });
    std::shared_ptr<Variant> variant;
    if (idle == variants.end() || (comes_again && variants.size() < kMostVariants)) {
      if (variants.size() == kMostVariants) forget(variants.begin());
      variant = make_variant();
    } else {
      variant = idle->variant;
      forget(idle);
      variant->resize(*symbolic);
    }
    variants.push_back({std::move(values), variant});
    return variant;
  }

  std::shared_ptr<Variant> variant_for(SymbolValues given) {
    const std::vector<int64_t>& symbols = symbolic->symbols();
    for (const int64_t id : symbols)
      check(id >= 0 && static_cast<size_t>(id) < given.size(), "a symbol of a plan has no value");
    const auto fits = [&](const Sized& sized) {
      for (size_t i = 0; i < symbols.size(); ++i)
        if (sized.values[i] != given[static_cast<size_t>(symbols[i])]) return false;
      return true;
    };
    const std::scoped_lock lock(mutex);
    if (!variants.empty() && fits(variants.back())) return variants.back().variant;
    if (const auto it = std::ranges::find_if(variants, fits); it != variants.end()) {
      std::rotate(it, it + 1, variants.end());
      return variants.back().variant;
    }
    std::vector<int64_t> values;
    values.reserve(symbols.size());
    for (const int64_t id : symbols) values.push_back(given[static_cast<size_t>(id)]);
    return variant_for_new(std::move(values));
  }

  std::vector<at::Tensor> run(std::span<const at::Tensor> inputs, std::vector<at::Tensor>* owned,
                              SymbolValues given) {
    check(inputs.size() == static_cast<size_t>(plan.input_count),
          "a plan runs on as many tensors as it has inputs");
    if (fixed) return fixed->run(inputs, owned);
    const std::shared_ptr<Variant> variant = variant_for(given);
    std::vector<at::Tensor> outputs = variant->run(inputs, owned);
    only_replays.store(variant->only_replays(), std::memory_order_relaxed);
    return outputs;
  }
};

Executable::Executable(plan::Plan plan, std::shared_ptr<backend::KernelLibrary> kernels,
                       std::vector<at::Tensor> constants, ExecutableOptions options)
    : impl_(std::make_unique<Impl>()) {
  plan::verify(plan);
  impl_->plan = std::move(plan);
  impl_->kernels = std::move(kernels);
  impl_->constants = std::move(constants);
  impl_->options = options;
  impl_->symbolic = std::make_unique<SymbolicPlan>(impl_->plan);
  if (!impl_->symbolic->symbols().empty()) return;
  if (!impl_->symbolic->evaluate({})) throw Unsupported("a kernel needs a size that is 0");
  impl_->fixed = impl_->make_variant();
}

Executable::~Executable() = default;

std::vector<at::Tensor> Executable::run(std::span<const at::Tensor> inputs, SymbolValues symbols) {
  return impl_->run(inputs, nullptr, symbols);
}

std::vector<at::Tensor> Executable::run_and_release(std::vector<at::Tensor> inputs, SymbolValues symbols) {
  return impl_->run(inputs, &inputs, symbols);
}

std::unique_ptr<Executable> Executable::with_plan(plan::Plan plan,
                                                  std::shared_ptr<backend::KernelLibrary> kernels) const {
  ExecutableOptions options = impl_->options;
  options.graphs = DeviceGraphPolicy::Never;
  return std::make_unique<Executable>(std::move(plan), std::move(kernels), impl_->constants, options);
}

bool Executable::only_replays() const {
  return impl_->fixed ? impl_->fixed->only_replays() : impl_->only_replays.load(std::memory_order_relaxed);
}

const plan::Plan& Executable::plan() const {
  return impl_->plan;
}

int64_t Executable::arena_bytes() const {
  if (impl_->fixed) return impl_->fixed->bytes();
  const std::scoped_lock lock(impl_->mutex);
  int64_t total = 0;
  for (const auto& sized : impl_->variants) total += sized.variant->bytes();
  return total;
}

DeviceGraphState Executable::device_graph_state() const {
  DeviceGraphState state;
  if (impl_->fixed) impl_->fixed->add_to(state);
  const std::scoped_lock lock(impl_->mutex);
  for (const auto& sized : impl_->variants) sized.variant->add_to(state);
  return state;
}

}  // namespace oxy::runtime
