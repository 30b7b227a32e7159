#include "runtime/execution/executable.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <fmt/format.h>

#include <algorithm>
#include <mutex>

#include "base/error.h"
#include "runtime/device/generators.h"
#include "runtime/execution/frame.h"
#include "runtime/execution/prepared_plan.h"
#include "runtime/execution/specialise.h"

namespace oxy::runtime {

namespace {

// `owned`: the inputs, if they may be dropped on the way.
void run_steps(const PreparedPlan& plan, Frame& frame, std::vector<at::Tensor>* owned) {
  for (const PreparedStep& step : plan.steps) {
    if (const auto* kernel = std::get_if<PreparedLaunch>(&step)) {
      frame.launch(*kernel);
    } else if (const auto* call = std::get_if<PreparedCall>(&step)) {
      call->invoke(frame.tensors());
      for (const plan::BufferId id : call->returned) frame.adopt(id);
    } else if (const auto* allocation = std::get_if<PreparedAllocation>(&step)) {
      frame.allocate(*allocation);
    } else if (const auto* release = std::get_if<PreparedRelease>(&step)) {
      if (owned == nullptr) continue;
      frame.drop(release->buffer);
      (*owned)[static_cast<size_t>(release->input)].reset();
    } else {
      frame.drop(std::get<PreparedFree>(step).buffer);
    }
  }
}

// Views that take part in autograd are made by who knows of gradients.
at::Tensor without_history(const at::Tensor& tensor) {
  return tensor.requires_grad() ? tensor.detach() : tensor;
}

// A plan for one set of sizes, with the frames of its calls.
class Variant {
 public:
  Variant(PreparedPlan plan, std::span<const at::Tensor> constants)
      : plan_(std::move(plan)),
        need_(plan_.runtime->arenas().announce(plan_.arena_bytes)),
        constants_(constants) {}

  std::vector<at::Tensor> run(std::span<const at::Tensor> inputs, std::vector<at::Tensor>* owned) {
    if (owned != nullptr) plan_.runtime->arenas().drop_idle_above(plan_.arena_bytes);
    Lease lease(*this);
    Frame& frame = *lease.frame;
    std::vector<at::Tensor> outputs(plan_.outputs.size());
    std::vector<at::Tensor> copies;
    // What may raise comes before what cannot be undone.
    for (size_t i = 0; i < outputs.size(); ++i)
      if (plan_.outputs[i].kind == graph::OutputKind::InputAlias) {
        const at::Tensor& input = inputs[static_cast<size_t>(plan_.outputs[i].alias)];
        outputs[i] = alias_of(without_history(input), plan_.outputs[i].spec);
      }
    KeepsGenerator generator(plan_.draws_random_numbers ? std::optional(plan_.device) : std::nullopt);
    {
      // What was recorded lies below autograd and autocast.
      const c10::impl::ExcludeDispatchKeyGuard below(c10::autograd_dispatch_keyset_with_ADInplaceOrView |
                                                     c10::autocast_dispatch_keyset);
      frame.begin_call(inputs);
      run_steps(plan_, frame, owned);
      frame.end_launches();
      take_values(frame, outputs);
      for (const PreparedMutation& mutation : plan_.mutations)
        if (mutation.copy) copies.push_back(frame.tensors()[mutation.slot].clone());
    }
    for (size_t i = 0; i < outputs.size(); ++i)
      if (plan_.outputs[i].kind == graph::OutputKind::OutputAlias)
        outputs[i] = alias_of(outputs[static_cast<size_t>(plan_.outputs[i].alias)], plan_.outputs[i].spec);
    generator.advance();
    if (!plan_.mutations.empty()) {
      const at::NoGradGuard no_grad;  // writes that take part in autograd are not captured
      auto copy = copies.begin();
      for (const PreparedMutation& mutation : plan_.mutations) {
        const at::Tensor& input = inputs[static_cast<size_t>(mutation.input)];
        if (!mutation.is_done) {
          const at::Tensor& target = mutation.is_seen || input.is_inference() ? input : input.variable_data();
          target.copy_(mutation.copy ? *copy++ : frame.tensors()[mutation.slot]);
        } else if (mutation.is_seen && !input.is_inference()) {
          input.unsafeGetTensorImpl()->bump_version();
        }
      }
    }
    return outputs;
  }

  int64_t bytes() const {
    const std::scoped_lock lock(mutex_);
    int64_t total = plan_.arena_bytes;
    for (const auto& frame : idle_) total += frame->held_bytes();
    return total;
  }

 private:
  struct Lease {
    explicit Lease(Variant& variant) : owner(variant), frame(variant.take()) {}
    ~Lease() {
      frame->end_call();
      owner.give_back(std::move(frame));
    }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    Variant& owner;
    std::unique_ptr<Frame> frame;
  };

  std::unique_ptr<Frame> take() {
    {
      const std::scoped_lock lock(mutex_);
      if (!idle_.empty()) {
        auto frame = std::move(idle_.back());
        idle_.pop_back();
        return frame;
      }
    }
    return std::make_unique<Frame>(plan_, constants_);
  }

  void give_back(std::unique_ptr<Frame> frame) {
    const std::scoped_lock lock(mutex_);
    idle_.push_back(std::move(frame));
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

  PreparedPlan plan_;
  std::shared_ptr<void> need_;  // while the plan lives, arenas of its size are kept
  std::span<const at::Tensor> constants_;
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Frame>> idle_;
};

// Sizes that changed on every call would otherwise keep an arena each.
constexpr size_t kMostVariants = 8;

}  // namespace

struct Executable::Impl {
  plan::Plan plan;
  std::shared_ptr<backend::KernelLibrary> kernels;
  std::vector<at::Tensor> constants;
  size_t visible_outputs;
  std::unique_ptr<SymbolicPlan> symbolic;
  std::shared_ptr<Variant> fixed;  // of a plan without symbols
  std::mutex mutex;
  std::vector<std::pair<std::vector<int64_t>, std::shared_ptr<Variant>>> variants;  // most recent last

  std::shared_ptr<Variant> make_variant(std::span<const int64_t> values) {
    const plan::Plan with_numbers = symbolic->at(values);
    for (const Expr& size : with_numbers.positive)
      if (size.constant() < 1) throw LeftToEager();
    return std::make_shared<Variant>(prepare(with_numbers, kernels.get(), constants.size(), visible_outputs),
                                     constants);
  }

  std::shared_ptr<Variant> variant_for(SymbolValues given) {
    std::vector<int64_t> values;
    values.reserve(symbolic->symbols().size());
    for (const int64_t id : symbolic->symbols()) {
      check(id >= 0 && static_cast<size_t>(id) < given.size(), "a symbol of a plan has no value");
      values.push_back(given[static_cast<size_t>(id)]);
    }
    const std::scoped_lock lock(mutex);
    const auto it =
        std::find_if(variants.begin(), variants.end(), [&](const auto& v) { return v.first == values; });
    if (it != variants.end()) {
      std::rotate(it, it + 1, variants.end());
      return variants.back().second;
    }
    if (variants.size() == kMostVariants) variants.erase(variants.begin());
    auto variant = make_variant(values);
    variants.emplace_back(std::move(values), std::move(variant));
    return variants.back().second;
  }

  std::vector<at::Tensor> run(std::span<const at::Tensor> inputs, std::vector<at::Tensor>* owned,
                              SymbolValues given) {
    check(inputs.size() == static_cast<size_t>(plan.input_count),
          "a plan runs on as many tensors as it has inputs");
    if (fixed) return fixed->run(inputs, owned);
    return variant_for(given)->run(inputs, owned);
  }
};

Executable::Executable(plan::Plan plan, std::shared_ptr<backend::KernelLibrary> kernels,
                       std::vector<at::Tensor> constants, size_t visible_outputs)
    : impl_(std::make_unique<Impl>()) {
  plan::verify(plan);
  impl_->plan = std::move(plan);
  impl_->kernels = std::move(kernels);
  impl_->constants = std::move(constants);
  impl_->visible_outputs = visible_outputs;
  impl_->symbolic = std::make_unique<SymbolicPlan>(impl_->plan);
  if (impl_->symbolic->symbols().empty()) impl_->fixed = impl_->make_variant({});
}

Executable::~Executable() = default;

std::vector<at::Tensor> Executable::run(std::span<const at::Tensor> inputs, SymbolValues symbols) {
  return impl_->run(inputs, nullptr, symbols);
}

std::vector<at::Tensor> Executable::run_and_release(std::vector<at::Tensor> inputs, SymbolValues symbols) {
  return impl_->run(inputs, &inputs, symbols);
}

const plan::Plan& Executable::plan() const {
  return impl_->plan;
}

int64_t Executable::arena_bytes() const {
  if (impl_->fixed) return impl_->fixed->bytes();
  const std::scoped_lock lock(impl_->mutex);
  int64_t total = 0;
  for (const auto& [values, variant] : impl_->variants) total += variant->bytes();
  return total;
}

}  // namespace oxy::runtime
