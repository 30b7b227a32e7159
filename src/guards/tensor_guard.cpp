#include "guards/tensor_guard.h"

#include <c10/core/TensorImpl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <string_view>

#include "runtime/values/tensors.h"

namespace oxy::guards {

TensorGuard TensorGuard::of(const at::Tensor& tensor, PyTypeObject* type) {
  TensorGuard guard;
  guard.type = type;
  guard.keys = tensor.key_set();
  guard.dtype = tensor.scalar_type();
  guard.device = tensor.device();
  guard.requires_grad = tensor.requires_grad();
  guard.history = history_of(tensor);
  guard.loses_history_when_written = runtime::loses_history_when_written(tensor);
  guard.sizes = tensor.sizes().vec();
  guard.strides = tensor.strides().vec();
  return guard;
}

void TensorGuard::open_size(int64_t dimension) {
  sizes[static_cast<size_t>(dimension)] = kAnyInteger;
  has_symbols = true;
}

void TensorGuard::open_stride(int64_t dimension) {
  strides[static_cast<size_t>(dimension)] = kAnyInteger;
  has_symbols = true;
}

void TensorGuard::make_dense(std::vector<int32_t> order) {
  std::ranges::fill(strides, kAnyInteger);
  dense_order = std::move(order);
  has_symbols = true;
}

bool is_dense_in(const std::vector<int32_t>& order, c10::IntArrayRef sizes, c10::IntArrayRef strides) {
  int64_t expected = 1;
  for (const int32_t dimension : order) {
    const auto d = static_cast<size_t>(dimension);
    if (strides[d] != expected) return false;
    expected *= std::max<int64_t>(sizes[d], 1);
  }
  return true;
}

bool TensorGuard::has_layout(c10::IntArrayRef is_sizes, c10::IntArrayRef is_strides) const {
  if (!has_symbols) return is_sizes == c10::IntArrayRef(sizes) && is_strides == c10::IntArrayRef(strides);
  if (is_sizes.size() != sizes.size()) return false;
  const auto fits = [](int64_t is, int64_t wanted) { return wanted == kAnyInteger || is == wanted; };
  return std::ranges::equal(is_sizes, sizes, fits) && std::ranges::equal(is_strides, strides, fits) &&
         is_dense_in(dense_order, is_sizes, is_strides);
}

namespace {

const torch::autograd::AutogradMeta* autograd_meta_of(const c10::TensorImpl* impl) {
  return static_cast<const torch::autograd::AutogradMeta*>(impl->autograd_meta());
}

// What autograd knows of a tensor that requires grad. Parameters, which are no views, are checked at every
// call, so that the question has a short way for them.
bool has_standing(const TensorGuard& guard, const at::Tensor& tensor) {
  const auto* meta = autograd_meta_of(tensor.unsafeGetTensorImpl());
  if (!meta->is_view_)
    return guard.history == (meta->grad_fn_ != nullptr ? History::Known : History::None) &&
           !guard.loses_history_when_written;
  return history_of(tensor) == guard.history &&
         runtime::loses_history_when_written(tensor) == guard.loses_history_when_written;
}

// Without a call for the few integers of a tensor.
bool are_equal(c10::IntArrayRef a, const std::vector<int64_t>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < b.size(); ++i)
    if (a[i] != b[i]) return false;
  return true;
}

}  // namespace

bool TensorGuard::has_kind(const at::Tensor& tensor) const {
  const c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
  const auto* meta = autograd_meta_of(impl);
  const bool is_differentiated = meta != nullptr && (meta->requires_grad_ || meta->grad_fn_ != nullptr ||
                                                     (meta->is_view_ && meta->requires_grad()));
  return impl->key_set() == keys && impl->dtype() == c10::scalarTypeToTypeMeta(dtype) &&
         impl->device() == device && is_differentiated == requires_grad &&
         (!requires_grad || has_standing(*this, tensor)) &&
         (!storage_offset || impl->storage_offset() == *storage_offset);
}

bool TensorGuard::matches(const at::Tensor& tensor) const {
  const c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
  if (!has_kind(tensor)) return false;  // it may have no strides
  if (has_symbols) return has_layout(impl->sizes(), impl->strides());
  return are_equal(impl->sizes(), sizes) && are_equal(impl->strides(), strides);
}

void TensorGuard::prefetch(const at::Tensor& tensor) {
  constexpr size_t kLine = 64;
  const auto* const begin = reinterpret_cast<const char*>(tensor.unsafeGetTensorImpl());
  for (size_t at = 0; at < sizeof(c10::TensorImpl); at += kLine) __builtin_prefetch(begin + at);
}

bool TensorGuard::differs_in_layout_alone(const at::Tensor& tensor) const {
  return has_kind(tensor) && tensor.dim() == static_cast<int64_t>(sizes.size());
}

namespace {

std::string_view history_text(History history) {
  switch (history) {
    case History::None:
      return "none (a leaf)";
    case History::Unrecorded:
      return "none yet (a view made before its tensor required grad)";
    case History::Known:
      return "known";
    case History::Unclear:
      return "unclear";
  }
  return "";
}

}  // namespace

std::string TensorGuard::difference(const at::Tensor& tensor) const {
  if (tensor.scalar_type() != dtype)
    return fmt::format("dtype: was {}, is {}", c10::toString(dtype), c10::toString(tensor.scalar_type()));
  if (tensor.device() != device)
    return fmt::format("device: was {}, is {}", device.str(), tensor.device().str());
  if (tensor.dim() != static_cast<int64_t>(sizes.size()))
    return fmt::format("rank: was {}, is {}", sizes.size(), tensor.dim());
  for (size_t i = 0; i < sizes.size(); ++i)
    if (sizes[i] != kAnyInteger && tensor.sizes()[i] != sizes[i])
      return fmt::format("size of dimension {}: was {}, is {}", i, sizes[i], tensor.sizes()[i]);
  if (!has_layout(tensor.sizes(), tensor.strides()))
    return dense_order.empty()
               ? fmt::format("strides: were {}, are {}", strides, tensor.strides().vec())
               : fmt::format("strides: were those of a dense tensor, are {}", tensor.strides().vec());
  if (tensor.requires_grad() != requires_grad)
    return fmt::format("requires_grad: was {}, is {}", requires_grad, tensor.requires_grad());
  if (const History now = history_of(tensor); now != history)
    return fmt::format("history in autograd: was {}, is {}", history_text(history), history_text(now));
  if (runtime::loses_history_when_written(tensor) != loses_history_when_written)
    return fmt::format("view of a tensor that does not require grad: was {}, is {}",
                       loses_history_when_written, !loses_history_when_written);
  if (storage_offset && tensor.storage_offset() != *storage_offset)
    return fmt::format("storage offset: was {}, is {}", *storage_offset, tensor.storage_offset());
  if (tensor.key_set() != keys)
    return fmt::format("kind of tensor: was {}, is {}", c10::toString(keys), c10::toString(tensor.key_set()));
  return "";
}

History history_of(const at::Tensor& tensor) {
  const auto* meta = torch::autograd::impl::get_autograd_meta(tensor);
  if (meta == nullptr) return History::None;
  if (!meta->is_view_) return meta->grad_fn_ != nullptr ? History::Known : History::None;
  if (runtime::is_unrecorded_view(tensor)) return History::Unrecorded;
  try {
    // PyTorch makes the grad_fn of a view whose base was written to when it is asked for.
    if (tensor.grad_fn() != nullptr) return History::Known;
    return meta->requires_grad_ || !tensor.requires_grad() ? History::None : History::Unclear;
  } catch (const c10::Error&) {
    return History::Unclear;
  }
}

bool has_gradient_hooks(const at::Tensor& tensor) {
  namespace impl = torch::autograd::impl;
  if (impl::get_autograd_meta(tensor) == nullptr) return false;
  if (!impl::hooks(tensor).empty() || impl::post_acc_grad_hooks(tensor) || tensor.retains_grad()) return true;
  const auto accumulator = impl::try_get_grad_accumulator(tensor);
  return accumulator &&
         (!accumulator->pre_hooks().empty() || !accumulator->post_hooks().empty() ||
          !accumulator->tensor_pre_hooks().empty() || accumulator->tensor_post_acc_grad_hooks() != nullptr);
}

}  // namespace oxy::guards
