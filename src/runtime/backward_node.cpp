#include "runtime/backward_node.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

#include "runtime/convert.h"

namespace oxy::runtime {

namespace {

std::vector<int64_t> constants_of(const std::vector<Expr>& values) {
  std::vector<int64_t> result;
  result.reserve(values.size());
  for (const Expr& value : values) result.push_back(value.constant());
  return result;
}

at::Tensor empty_tangent(const TensorMeta& wanted) {
  return at::empty_strided(
      constants_of(wanted.sizes), constants_of(wanted.strides),
      at::TensorOptions(dtype_to_torch(wanted.dtype)).device(device_to_torch(wanted.device)));
}

// A gradient as the compiled graph wants it: eager may hand over an expanded or transposed one.
at::Tensor fitting(const at::Tensor& gradient, const TensorMeta& wanted) {
  const std::vector<int64_t> sizes = constants_of(wanted.sizes), strides = constants_of(wanted.strides);
  const c10::ScalarType type = dtype_to_torch(wanted.dtype);
  if (gradient.scalar_type() == type && gradient.sizes() == c10::IntArrayRef(sizes) &&
      gradient.strides() == c10::IntArrayRef(strides) && !gradient.is_neg() && !gradient.is_conj() &&
      !gradient._is_zerotensor())
    return gradient;
  return empty_tangent(wanted).copy_(gradient);
}

}  // namespace

at::Tensor zero_tangent(const TensorMeta& wanted) {
  return empty_tangent(wanted).zero_();
}

void BackwardNode::add_input_of(size_t tangent) {
  const TensorMeta& meta = program_->tangents[tangent];
  const c10::ScalarType type = dtype_to_torch(meta.dtype);
  const std::vector<int64_t> sizes = constants_of(meta.sizes);
  add_input_metadata(at::TensorOptions(type).device(device_to_torch(meta.device)),
                     c10::fromIntArrayRefSlow(sizes), false, false, type);
}

void BackwardNode::save(const at::Tensor& tensor, bool is_output) {
  saved_.emplace_back(tensor, is_output);
}

void BackwardNode::watch(const at::Tensor& tensor) {
  at::Tensor empty = tensor.detach();  // has the same version
  empty.unsafeGetTensorImpl()->set_storage_keep_dtype(at::empty({0}, tensor.options()).storage());
  watched_.emplace_back(empty, false);
}

bool BackwardNode::is_spent() const {
  return std::ranges::all_of(program_->freed_with, [&](int32_t number) {
    return number >= 0 && spent_[static_cast<size_t>(number)];
  });
}

void BackwardNode::forget() {
  for (auto& saved : saved_) saved.reset_data();
  for (auto& watched : watched_) watched.reset_data();
}

void BackwardNode::will_release_variables() {
  const std::lock_guard<std::mutex> lock(mutex_);
  will_release_ = true;
}

void BackwardNode::release_variables() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (is_spent()) forget();
}

torch::autograd::variable_list BackwardNode::apply(torch::autograd::variable_list&& gradients) {
  TORCH_CHECK(
      !at::GradMode::is_enabled(),
      "oxyfuel: the gradients of a compiled region cannot be differentiated again (create_graph=True); run "
      "the forward pass in eager for that: oxyfuel.disable, or a call of the function that was compiled");
  const size_t results = num_outputs();
  if (std::none_of(gradients.begin(), gradients.end(), [](const at::Tensor& g) { return g.defined(); }))
    return torch::autograd::variable_list(results);
  std::vector<at::Tensor> saved;
  saved.reserve(saved_.size());
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const std::vector<int32_t>& numbers = program_->freed_with;
    std::vector<bool> now(spent_.size());
    for (size_t t = 0; t < gradients.size(); ++t)
      if (gradients[t].defined() && numbers[t] >= 0) now[static_cast<size_t>(numbers[t])] = true;
    for (size_t i = 0; i < now.size(); ++i)
      TORCH_CHECK(!now[i] || !spent_[i], torch::autograd::ERR_BACKWARD_TWICE);
    for (auto& variable : saved_) saved.push_back(variable.unpack(getptr()));
    for (auto& variable : watched_) variable.unpack(getptr());
    if (will_release_) {
      for (size_t i = 0; i < now.size(); ++i) spent_[i] = spent_[i] || now[i];
      // The engine is about to release them anyway: what is read for the last time is freed on the way.
      if (is_spent()) forget();
    }
    will_release_ = false;
  }
  const at::AutoDispatchBelowADInplaceOrView below;
  std::vector<bool> wanted(results);
  for (size_t i = 0; i < results; ++i) {
    const std::vector<bool>& flows = program_->flows[i];
    for (size_t t = 0; t < flows.size(); ++t) wanted[i] = wanted[i] || (flows[t] && gradients[t].defined());
    wanted[i] = wanted[i] && task_should_compute_output(i);
  }
  std::vector<at::Tensor> tangents;
  tangents.reserve(gradients.size());
  std::vector<bool> absent;
  for (size_t i = 0; i < gradients.size(); ++i) {
    if (!gradients[i].defined()) {
      absent.resize(gradients.size());
      absent[i] = true;
    }
    tangents.push_back(gradients[i].defined() ? fitting(gradients[i], program_->tangents[i]) : at::Tensor());
    gradients[i].reset();
  }
  std::vector<at::Tensor> computed = program_->run(std::move(saved), std::move(tangents), std::move(absent));
  for (size_t i = 0; i < results; ++i)
    if (!wanted[i]) computed[i].reset();
  return computed;
}

}  // namespace oxy::runtime
