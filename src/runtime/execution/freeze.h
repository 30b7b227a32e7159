// Weights taken as constants, with a write barrier that says when one was changed: freezing in
// docs/layers/passes.md.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Storage.h>

#include <cstdint>
#include <optional>
#include <string>

namespace oxy::runtime {

// The contents of a tensor at the moment of freezing, shared with it by copy-on-write storage. Every write to
// the tensor that goes through torch, in whatever way and through whatever alias, first moves the tensor to a
// storage of its own: then unchanged() is false, for ever. What torch cannot see is a write through a raw
// address that was taken before freezing (`data_ptr()` kept as an integer); a live numpy or dlpack view is
// refused at freezing. Some readers (numpy(), pickle, data_ptr()) count as writes: torch cannot know what
// they do.
//
// While it lives, a changed tensor's old contents stay in memory: drop it once unchanged() is false.
class FrozenTensor {
 public:
  // True while `tensor` is the tensor that was frozen, or another with the same storage and offset, and
  // nothing wrote to it. A few loads; any thread. Sizes, strides and dtype are the caller's to guard.
  bool unchanged(const at::Tensor& tensor) const noexcept {
    const c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
    return impl->has_storage() && impl->storage_offset() == offset_ &&
           impl->unsafe_storage().unsafeGetStorageImpl()->data_ptr().get_context() == context_;
  }

  // The frozen contents as a tensor (no autograd) for building constants. What asks it for a mutable pointer,
  // as packing does, gets a private copy and disturbs nobody.
  at::Tensor contents() const;
  int64_t bytes() const { return bytes_; }

 private:
  friend struct FreezeAttempt try_freeze(const at::Tensor& tensor);

  // Kept out of reach of every operator, so that the context it shares with the tensor stays alive and its
  // address is not used again.
  c10::Storage barrier_;
  const void* context_ = nullptr;
  c10::ScalarType dtype_ = c10::ScalarType::Float;
  std::vector<int64_t> sizes_, strides_;
  int64_t offset_ = 0;
  int64_t bytes_ = 0;
};

struct FreezeAttempt {
  std::optional<FrozenTensor> frozen;
  std::string reason;  // why not, for logs and metrics
};

// Freezes a parameter or buffer. Changes nothing that a reader can see; the tensor's storage becomes
// copy-on-write. Refuses what is not a plain strided CPU tensor, storages with another holder (it may be a
// numpy view, whose writes nobody sees), memory that torch did not allocate (mmap, from_numpy, shared
// memory), and tensors that thawed too often. Hold the GIL.
FreezeAttempt try_freeze(const at::Tensor& tensor);

// Counts a thaw: unchanged() was false for this tensor and its frozen form was dropped.
void note_thaw(const at::Tensor& tensor);
inline constexpr int kMostThaws = 3;

}  // namespace oxy::runtime
