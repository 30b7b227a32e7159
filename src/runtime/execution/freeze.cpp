#include "runtime/execution/freeze.h"

#include <c10/core/impl/COW.h>
#include <fmt/format.h>

#include <mutex>
#include <unordered_map>

#include "runtime/device/device.h"
#include "runtime/values/tensors.h"

namespace oxy::runtime {

namespace {

// Thaws by tensor. The weak reference keeps the address from being used by another tensor.
struct ThawCounts {
  struct Entry {
    c10::weak_intrusive_ptr<c10::TensorImpl> tensor;
    int count = 0;
  };
  std::mutex mutex;
  std::unordered_map<const c10::TensorImpl*, Entry> entries;
};

ThawCounts& thaws() {
  static ThawCounts counts;
  return counts;
}

int thaw_count(const at::Tensor& tensor) {
  ThawCounts& counts = thaws();
  const std::scoped_lock lock(counts.mutex);
  const auto it = counts.entries.find(tensor.unsafeGetTensorImpl());
  return it == counts.entries.end() ? 0 : it->second.count;
}

std::string refusal(const at::Tensor& tensor) {
  if (!tensor.defined()) return "it is undefined";
  const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
  if (find_device(impl.device().type()) == nullptr) return "no plan runs on its device";
  if (impl.layout() != c10::kStrided || !impl.has_storage()) return "it is not a strided tensor";
  if (impl.is_python_dispatch() || impl.key_set().has(c10::DispatchKey::Python))
    return "its class overrides torch's operators";
  if (tensor.is_conj() || tensor.is_neg()) return "it is conjugated or negated lazily";
  if (impl.storage_offset() < 0 || tensor.numel() == 0) return "it is empty";
  const c10::Storage& storage = impl.unsafe_storage();
  const bool is_shared_by_us = c10::impl::cow::is_cow_data_ptr(storage.data_ptr());
  if (!is_shared_by_us && !c10::impl::cow::has_simple_data_ptr(*storage.unsafeGetStorageImpl()))
    return "its memory is not torch's own (mmap, numpy or shared memory)";
  if (storage.use_count() > 1) return "its storage has another holder, perhaps a numpy view";
  if (thaw_count(tensor) >= kMostThaws) return "it was written to after freezing too often";
  return {};
}

}  // namespace

at::Tensor FrozenTensor::contents() const {
  c10::Storage clone(c10::impl::cow::lazy_clone_storage(*barrier_.unsafeGetStorageImpl()));
  return tensor_over(std::move(clone), {dtype_, sizes_, strides_, offset_});
}

FreezeAttempt try_freeze(const at::Tensor& tensor) {
  if (std::string reason = refusal(tensor); !reason.empty()) return {std::nullopt, std::move(reason)};
  c10::StorageImpl& storage = *tensor.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl();
  c10::intrusive_ptr<c10::StorageImpl> barrier = c10::impl::cow::lazy_clone_storage(storage);
  if (!barrier) return {std::nullopt, "torch cannot share its memory copy-on-write"};
  FrozenTensor frozen;
  frozen.barrier_ = c10::Storage(std::move(barrier));
  frozen.context_ = storage.data_ptr().get_context();
  frozen.dtype_ = tensor.scalar_type();
  frozen.sizes_ = tensor.sizes().vec();
  frozen.strides_ = tensor.strides().vec();
  frozen.offset_ = tensor.storage_offset();
  frozen.bytes_ = static_cast<int64_t>(tensor.nbytes());
  return {std::move(frozen), {}};
}

void note_thaw(const at::Tensor& tensor) {
  ThawCounts& counts = thaws();
  const std::scoped_lock lock(counts.mutex);
  std::erase_if(counts.entries, [](const auto& item) { return item.second.tensor.expired(); });
  auto [it, is_new] = counts.entries.try_emplace(
      tensor.unsafeGetTensorImpl(),
      ThawCounts::Entry{c10::weak_intrusive_ptr<c10::TensorImpl>(tensor.getIntrusivePtr()), 0});
  ++it->second.count;
}

}  // namespace oxy::runtime
