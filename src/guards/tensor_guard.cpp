#include "guards/tensor_guard.h"

#include <c10/core/TensorImpl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>

namespace oxy::guards {

TensorGuard TensorGuard::of(const at::Tensor& tensor, PyTypeObject* type) {
  TensorGuard guard;
  guard.type = type;
  guard.keys = tensor.key_set();
  guard.dtype = tensor.scalar_type();
  guard.device = tensor.device();
  guard.requires_grad = tensor.requires_grad();
  guard.history = history_of(tensor);
  guard.sizes = tensor.sizes().vec();
  guard.strides = tensor.strides().vec();
  return guard;
}

bool TensorGuard::matches(const at::Tensor& tensor) const {
  const c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
  return impl->key_set() == keys && impl->dtype() == c10::scalarTypeToTypeMeta(dtype) &&
         impl->device() == device && impl->requires_grad() == requires_grad &&
         impl->sizes() == c10::IntArrayRef(sizes) && impl->strides() == c10::IntArrayRef(strides) &&
         (!requires_grad || history_of(tensor) == history) &&
         (!storage_offset || impl->storage_offset() == *storage_offset);
}

std::string TensorGuard::difference(const at::Tensor& tensor) const {
  if (tensor.scalar_type() != dtype)
    return fmt::format("dtype: was {}, is {}", c10::toString(dtype), c10::toString(tensor.scalar_type()));
  if (tensor.device() != device)
    return fmt::format("device: was {}, is {}", device.str(), tensor.device().str());
  if (tensor.dim() != static_cast<int64_t>(sizes.size()))
    return fmt::format("rank: was {}, is {}", sizes.size(), tensor.dim());
  for (size_t i = 0; i < sizes.size(); ++i)
    if (tensor.sizes()[i] != sizes[i])
      return fmt::format("size of dimension {}: was {}, is {}", i, sizes[i], tensor.sizes()[i]);
  if (tensor.strides() != c10::IntArrayRef(strides))
    return fmt::format("strides: were {}, are {}", strides, tensor.strides().vec());
  if (tensor.requires_grad() != requires_grad)
    return fmt::format("requires_grad: was {}, is {}", requires_grad, tensor.requires_grad());
  if (const History now = history_of(tensor); now != history)
    return fmt::format("leaf of autograd's graph: was {}, is {}", history == History::None,
                       now == History::None);
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
