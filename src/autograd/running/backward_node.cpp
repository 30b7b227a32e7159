#include "autograd/running/backward_node.h"

#include <ATen/SavedTensorHooks.h>
#include <ATen/TensorOperators.h>
#include <ATen/TensorSubclassLikeUtils.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_efficientzerotensor.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/values/convert.h"
#include "runtime/values/tensors.h"

namespace oxy::autograd {

using runtime::device_to_torch;
using runtime::dtype_to_torch;
using runtime::numbers_of;
using runtime::SymbolValues;

namespace {

at::Tensor empty_tangent(const TensorMeta& wanted, SymbolValues symbols) {
  return at::empty_strided(
      numbers_of(wanted.sizes, symbols), numbers_of(wanted.strides, symbols),
      at::TensorOptions(dtype_to_torch(wanted.dtype)).device(device_to_torch(wanted.device)));
}

// A gradient as the compiled graph wants it: eager may hand over an expanded or transposed one.
at::Tensor fitting(at::Tensor gradient, const TensorMeta& wanted, SymbolValues symbols) {
  if (gradient.layout() != c10::kStrided) gradient = gradient.to_dense();
  const std::vector<int64_t> sizes = numbers_of(wanted.sizes, symbols),
                             strides = numbers_of(wanted.strides, symbols);
  const c10::ScalarType type = dtype_to_torch(wanted.dtype);
  if (gradient.scalar_type() == type && gradient.sizes() == c10::IntArrayRef(sizes) &&
      gradient.strides() == c10::IntArrayRef(strides) && !gradient.is_neg() && !gradient.is_conj() &&
      !gradient._is_zerotensor())
    return gradient;
  return empty_tangent(wanted, symbols).copy_(gradient);
}

// A batched tensor, or one of a class that says itself what operators do with it.
bool is_foreign(const at::Tensor& gradient) {
  return gradient.layout() == c10::kStrided && at::isTensorSubclassLike(gradient);
}

// Whether it has elements at an address, which compiled code reads.
bool is_plain(const at::Tensor& gradient) {
  return gradient.layout() == c10::kStrided && !at::isTensorSubclassLike(gradient);
}

uint32_t version_of(const at::Tensor& tensor) {
  return tensor.is_inference() ? 0 : tensor.unsafeGetTensorImpl()->version_counter().current_version();
}

// How far two ways to compute gradients in this precision may be apart, beside the length of all of them.
double tolerance_of(c10::ScalarType type) {
  const c10::ScalarType real = c10::toRealValueType(type);
  if (real == c10::kDouble) return 1e-5;
  return real == c10::kFloat ? 1e-2 : 0.2;
}

double epsilon_of(c10::ScalarType type) {
  switch (c10::toRealValueType(type)) {
    case c10::kDouble:
      return std::numeric_limits<double>::epsilon();
    case c10::kFloat:
      return std::numeric_limits<float>::epsilon();
    default:
      return std::numeric_limits<c10::BFloat16>::epsilon();
  }
}

double square_of_length(const at::Tensor& tensor) {
  return at::abs(tensor).to(at::kDouble).square().sum().item<double>();
}

// A wrong history would not be noticed otherwise. `flowing`: the tangents, undefined where there is none. Of
// gradients that cancel out rounding alone is left: they may differ as far as it goes.
void check_alike(const std::vector<at::Tensor>& again, const std::vector<at::Tensor>& computed,
                 const std::vector<at::Tensor>& flowing) {
  double difference = 0, length = 0, flow = 0, tolerance = 0, rounding = 0;
  for (size_t i = 0; i < computed.size(); ++i) {
    if (!computed[i].defined() && !again[i].defined()) continue;
    const at::Tensor& known = computed[i].defined() ? computed[i] : again[i];
    length += square_of_length(known);
    difference += square_of_length(
        computed[i].defined() && again[i].defined() ? again[i].detach() - computed[i] : known);
    tolerance = std::max(tolerance, tolerance_of(known.scalar_type()));
    rounding = std::max(rounding, epsilon_of(known.scalar_type()));
  }
  for (const at::Tensor& tangent : flowing)
    if (tangent.defined()) flow += square_of_length(tangent);
  const double most = std::max(tolerance * std::sqrt(length), std::sqrt(rounding * flow));
  const bool is_alike = !std::isfinite(difference) || !std::isfinite(length) || std::sqrt(difference) <= most;
  TORCH_CHECK(is_alike,
              "oxyfuel: internal error, the gradients of a compiled region are others when they are to be "
              "differentiated again (create_graph=True); please report it, and run the forward pass in eager "
              "for now: oxyfuel.disable");
}

}  // namespace

at::Tensor zero_tangent(const TensorMeta& wanted, SymbolValues symbols) {
  return empty_tangent(wanted, symbols).zero_();
}

void BackwardNode::add_input_of(size_t tangent) {
  const TensorMeta& meta = program_->tangents[tangent];
  const c10::ScalarType type = dtype_to_torch(meta.dtype);
  const std::vector<int64_t> sizes = numbers_of(meta.sizes, symbols_);
  add_input_metadata(at::TensorOptions(type).device(device_to_torch(meta.device)),
                     c10::fromIntArrayRefSlow(sizes), false, false, type);
}

void BackwardNode::save(const at::Tensor& tensor, bool is_output) {
  const std::vector<bool>& readers = program_->readers.of_saved.at(saved_.size());
  const bool is_read_by_all = std::ranges::find(readers, false) == readers.end();
  const bool has_hooks = at::SavedTensorDefaultHooks::get_hooks().has_value();
  Saved& saved = saved_.emplace_back();
  saved.variable = torch::autograd::SavedVariable(tensor, is_output);
  if (is_read_by_all || has_hooks) return;
  saved.unchecked = tensor.detach();
  saved.version = version_of(tensor);
}

void BackwardNode::watch(const at::Tensor& tensor) {
  at::Tensor empty = tensor.detach();  // has the same version
  empty.unsafeGetTensorImpl()->set_storage_keep_dtype(at::empty({0}, tensor.options()).storage());
  watched_.emplace_back(empty, false);
}

void BackwardNode::keep(const at::Tensor& tensor, std::optional<size_t> edge) {
  const bool is_read = !program_->stand_ins.at(kept_.size());
  kept_.push_back({is_read ? tensor.detach() : at::Tensor(), edge, version_of(tensor)});
}

bool BackwardNode::is_spent() const {
  return std::ranges::all_of(program_->freed_with, [&](int32_t number) {
    return number >= 0 && spent_[static_cast<size_t>(number)];
  });
}

void BackwardNode::forget() {
  for (auto& saved : saved_) {
    saved.variable.reset_data();
    saved.unchecked.reset();
  }
  for (auto& watched : watched_) watched.reset_data();
  kept_.clear();
}

void BackwardNode::will_release_variables() {
  const std::lock_guard<std::mutex> lock(mutex_);
  will_release_ = true;
}

void BackwardNode::release_variables() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (is_spent()) forget();
}

std::vector<at::Tensor> BackwardNode::kept_tensors() {
  std::vector<at::Tensor> tensors;
  for (size_t i = 0; i < kept_.size(); ++i) {
    const Kept& kept = kept_[i];
    TORCH_CHECK(!kept.value.defined() || version_of(kept.value) == kept.version,
                "oxyfuel: the gradients of a compiled region cannot be differentiated again "
                "(create_graph=True): a tensor that was given to the region has been modified by an inplace "
                "operation since");
    at::Tensor& tensor = tensors.emplace_back(
        kept.value.defined() ? kept.value.detach() : zero_tangent(program_->stand_ins[i].value(), symbols_));
    if (kept.edge && next_edge(*kept.edge).is_valid())
      torch::autograd::impl::set_gradient_edge(tensor, next_edge(*kept.edge));
  }
  return tensors;
}

BackwardNode::Inputs BackwardNode::take_inputs(const torch::autograd::variable_list& gradients,
                                               bool runs_again) {
  Inputs inputs;
  inputs.saved.reserve(saved_.size());
  const std::lock_guard<std::mutex> lock(mutex_);
  const std::vector<int32_t>& numbers = program_->freed_with;
  std::vector<bool> now(spent_.size());
  for (size_t t = 0; t < gradients.size(); ++t)
    if (gradients[t].defined() && numbers[t] >= 0) now[static_cast<size_t>(numbers[t])] = true;
  for (size_t i = 0; i < now.size(); ++i)
    TORCH_CHECK(!now[i] || !spent_[i], torch::autograd::ERR_BACKWARD_TWICE);
  const auto is_read = [&](const std::vector<bool>& readers) {
    for (size_t t = 0; t < readers.size(); ++t)
      if (readers[t] && gradients[t].defined()) return true;
    return false;
  };
  for (size_t i = 0; i < saved_.size(); ++i) {
    const Saved& saved = saved_[i];
    const bool is_stale = !runs_again && saved.unchecked.defined() &&
                          !is_read(program_->readers.of_saved[i]) &&
                          version_of(saved.unchecked) != saved.version;
    inputs.saved.push_back(is_stale ? saved.unchecked : saved.variable.unpack(getptr()));
    inputs.has_stale = inputs.has_stale || is_stale;
  }
  for (size_t i = 0; i < watched_.size(); ++i)
    if (is_read(program_->readers.of_watched[i])) watched_[i].unpack(getptr());
  if (runs_again) inputs.kept = kept_tensors();
  if (will_release_) {
    for (size_t i = 0; i < now.size(); ++i) spent_[i] = spent_[i] || now[i];
    // The engine is about to release them anyway: what is read for the last time is freed on the way.
    if (is_spent()) forget();
  }
  will_release_ = false;
  return inputs;
}

torch::autograd::variable_list BackwardNode::apply(torch::autograd::variable_list&& gradients) {
  const bool creates_graph = at::GradMode::is_enabled();
  const bool are_plain =
      std::ranges::all_of(gradients, [](const at::Tensor& g) { return !g.defined() || is_plain(g); });
  const bool runs_again = creates_graph || (!are_plain && program_->why_not_again.empty());
  TORCH_CHECK(!creates_graph || program_->why_not_again.empty(),
              "oxyfuel: the gradients of a compiled region cannot be differentiated again "
              "(create_graph=True), since ",
              program_->why_not_again,
              "; run the forward pass in eager for that: oxyfuel.disable, or a call of the function that was "
              "compiled");
  TORCH_CHECK_NOT_IMPLEMENTED(
      are_plain || runs_again ||
          std::ranges::none_of(gradients, [](const at::Tensor& g) { return g.defined() && is_foreign(g); }),
      "oxyfuel: gradients that stand for several (is_grads_batched=True, torch.vmap) or are of a class of "
      "their own cannot go through a compiled region, since ",
      program_->why_not_again,
      "; run the forward pass in eager for that: oxyfuel.disable, or a call of the function that was "
      "compiled");
  const size_t results = num_outputs();
  if (std::none_of(gradients.begin(), gradients.end(), [](const at::Tensor& g) { return g.defined(); }))
    return torch::autograd::variable_list(results);
  Inputs inputs = take_inputs(gradients, runs_again);
  std::vector<bool> wanted(results);
  for (size_t i = 0; i < results; ++i) {
    const std::vector<bool>& flows = program_->flows[i];
    for (size_t t = 0; t < flows.size(); ++t) wanted[i] = wanted[i] || (flows[t] && gradients[t].defined());
    wanted[i] = wanted[i] && task_should_compute_output(i);
  }
  std::vector<at::Tensor> again;
  const std::vector<at::Tensor> flowing = runs_again ? gradients : std::vector<at::Tensor>();
  if (runs_again) {
    const at::AutoGradMode grad_mode(true);
    again = program_->run_again(inputs.saved, inputs.kept, gradients, wanted, creates_graph, symbols_);
    if (!are_plain) return again;
  }

  const at::AutoDispatchBelowADInplaceOrView below;
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> tangents;
  tangents.reserve(gradients.size());
  std::vector<bool> absent;
  for (size_t i = 0; i < gradients.size(); ++i) {
    if (!gradients[i].defined()) {
      absent.resize(gradients.size());
      absent[i] = true;
    }
    tangents.push_back(gradients[i].defined() ? fitting(gradients[i], program_->tangents[i], symbols_)
                                              : at::Tensor());
    gradients[i].reset();
  }
  std::vector<at::Tensor> computed = program_->run(std::move(inputs.saved), std::move(tangents),
                                                   std::move(absent), inputs.has_stale, symbols_);
  for (size_t i = 0; i < results; ++i)
    if (!wanted[i])
      computed[i].reset();
    else if (program_->is_zero_tensor[i] && computed[i].defined())
      computed[i] = at::_efficientzerotensor(computed[i].sizes(), computed[i].options());
  if (!runs_again) return computed;
  check_alike(again, computed, flowing);
  return again;
}

}  // namespace oxy::autograd
