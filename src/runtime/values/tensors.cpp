#include "runtime/values/tensors.h"

#include <ATen/EmptyTensor.h>
#include <c10/core/impl/COW.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>

namespace oxy::runtime {

int64_t TensorSpec::element_count() const {
  int64_t count = 1;
  for (const int64_t size : sizes) count *= size;
  return count;
}

c10::BackendComponent backend_component(c10::DeviceType type) {
  return c10::toBackendComponent(c10::computeDispatchKey(std::nullopt, c10::kStrided, c10::Device(type)));
}

c10::DispatchKey autograd_key(c10::DeviceType type) {
  return c10::toRuntimePerBackendFunctionalityKey(c10::DispatchKey::AutogradFunctionality,
                                                  backend_component(type));
}

int64_t number_of(const sym::Expr& value, SymbolValues symbols) {
  if (value.is_constant()) return value.constant();
  return sym::evaluate(value, [&](int64_t id) -> std::optional<int64_t> {
    const auto place = static_cast<size_t>(id);
    return id >= 0 && place < symbols.size() ? std::optional(symbols[place]) : std::nullopt;
  });
}

std::vector<int64_t> numbers_of(const std::vector<sym::Expr>& values, SymbolValues symbols) {
  std::vector<int64_t> result;
  result.reserve(values.size());
  for (const sym::Expr& value : values) result.push_back(number_of(value, symbols));
  return result;
}

std::vector<int64_t> constants_of(const std::vector<sym::Expr>& values) {
  std::vector<int64_t> result;
  result.reserve(values.size());
  for (const sym::Expr& value : values) result.push_back(value.constant());
  return result;
}

bool loses_history_when_written(const at::Tensor& tensor) {
  const auto* meta = torch::autograd::impl::get_autograd_meta(tensor);
  return meta != nullptr && meta->is_view_ && tensor.requires_grad() && tensor.is_view() &&
         !tensor._base().requires_grad();
}

bool is_unrecorded_view(const at::Tensor& tensor) {
  namespace autograd = torch::autograd;
  const auto* meta = autograd::impl::get_autograd_meta(tensor);
  if (meta == nullptr || !meta->is_view_ || meta->grad_fn_ != nullptr || meta->requires_grad_) return false;
  const auto* view = static_cast<const autograd::DifferentiableViewMeta*>(meta);
  return meta->requires_grad() && view->get_creation_meta() == autograd::CreationMeta::DEFAULT &&
         view->get_attr_version() != static_cast<uint32_t>(tensor._version());
}

at::Tensor tensor_over(c10::Storage storage, const TensorSpec& spec, int64_t first) {
  const c10::DispatchKeySet keys = c10::DispatchKeySet(c10::DispatchKey::Dense) |
                                   c10::DispatchKeySet(backend_component(storage.device_type()));
  at::Tensor tensor = at::detail::make_tensor<c10::TensorImpl>(std::move(storage), keys,
                                                               c10::scalarTypeToTypeMeta(spec.dtype));
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(spec.sizes, spec.strides, first + spec.offset);
  return tensor;
}

at::Tensor view_of(const at::Tensor& base, const TensorSpec& spec) {
  return tensor_over(base.storage(), spec, base.storage_offset());
}

at::Tensor alias_of(const at::Tensor& base, const TensorSpec& spec) {
  if (base.scalar_type() == spec.dtype)
    return base.as_strided(spec.sizes, spec.strides, base.storage_offset() + spec.offset);
  // The whole storage as elements of the other type.
  const auto item = static_cast<int64_t>(c10::elementSize(spec.dtype));
  const auto own = static_cast<int64_t>(base.itemsize());
  const auto bytes =
      static_cast<int64_t>(base.storage().nbytes()) / std::max(item, own) * std::max(item, own);
  const at::Tensor flat = base.as_strided({bytes / own}, {1}, 0);
  const at::Tensor parts = base.is_complex() ? at::view_as_real(flat).view({-1}) : flat;
  // A view as the same type, too, would cut the gradients off.
  const c10::ScalarType number = c10::toRealValueType(spec.dtype);
  const at::Tensor numbers = parts.scalar_type() == number ? parts : parts.view(number);
  const at::Tensor viewed =
      c10::isComplexType(spec.dtype) ? at::view_as_complex(numbers.view({-1, 2})) : numbers;
  return viewed.as_strided(spec.sizes, spec.strides, base.storage_offset() * own / item + spec.offset);
}

at::Tensor without_history(const at::Tensor& tensor) {
  return tensor.requires_grad() ? tensor.detach() : tensor;
}

at::Tensor for_reading(const at::Tensor& tensor) {
  const c10::Storage& storage = tensor.unsafeGetTensorImpl()->unsafe_storage();
  if (!c10::impl::cow::is_cow_data_ptr(storage.data_ptr())) return tensor;
  c10::DataPtr borrowed(const_cast<void*>(storage.data()), storage.device());
  c10::Storage alias(c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(), storage.nbytes(), std::move(borrowed), /*allocator=*/nullptr,
      /*resizable=*/false));
  return tensor_over(std::move(alias),
                     {tensor.scalar_type(), tensor.sizes().vec(), tensor.strides().vec(), 0},
                     tensor.storage_offset());
}

at::Tensor shared_copy(const at::Tensor& tensor) {
  c10::intrusive_ptr<c10::StorageImpl> storage = c10::impl::cow::lazy_clone_storage(
      *tensor.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl());
  if (!storage) return tensor.detach().clone();
  return tensor_over(c10::Storage(std::move(storage)),
                     {tensor.scalar_type(), tensor.sizes().vec(), tensor.strides().vec(), 0},
                     tensor.storage_offset());
}

int64_t bytes_of(const TensorSpec& spec) {
  return static_cast<int64_t>(
      at::detail::computeStorageNbytes(spec.sizes, spec.strides, c10::elementSize(spec.dtype)));
}

bool has_layout(const at::Tensor& tensor, const TensorSpec& spec) {
  if (tensor.layout() != c10::kStrided || tensor.sizes() != c10::IntArrayRef(spec.sizes)) return false;
  const c10::IntArrayRef strides = tensor.strides();
  for (size_t d = 0; d < spec.sizes.size(); ++d)
    if (spec.sizes[d] > 1 && strides[d] != spec.strides[d]) return false;
  return true;
}

}  // namespace oxy::runtime
