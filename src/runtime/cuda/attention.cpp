#include "runtime/cuda/attention.h"

#include <ATen/Context.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "aten/operators.h"
#include "runtime/extern/general.h"

namespace oxy::runtime {

namespace {

constexpr uintptr_t kBytesOfLoad = 16;
constexpr int64_t kLoad = 8;             // elements of half precision in a load of 16 bytes
constexpr int64_t kWidestOfFlash = 256;  // elements of a head
constexpr int64_t kWidestOfCudnn = 128;
// Below, products that read keys and values once are as fast (a decoder's next token).
constexpr int64_t kFewestRows = 16;

// Copies in the place of tensors that lie elsewhere than kernels want them. The tensors come back at the end,
// also of a call that throws: a frame borrows those of its inputs.
class AlignedCopies {
 public:
  explicit AlignedCopies(at::Tensor* tensors) : tensors_(tensors) {}
  ~AlignedCopies() {
    for (auto& [slot, tensor] : replaced_) std::swap(tensor, tensors_[slot]);
  }
  AlignedCopies(const AlignedCopies&) = delete;
  AlignedCopies& operator=(const AlignedCopies&) = delete;

  void replace(Slot slot) {
    at::Tensor& tensor = tensors_[slot];
    if (reinterpret_cast<uintptr_t>(tensor.const_data_ptr()) % kBytesOfLoad == 0) return;
    replaced_.emplace_back(slot, tensor.clone());
    std::swap(replaced_.back().second, tensor);
  }

 private:
  at::Tensor* tensors_;
  std::vector<std::pair<Slot, at::Tensor>> replaced_;
};

}  // namespace

// docs/gpu.md says why it is these kernels.
AttentionOperator attention_on_cuda(const AttentionShape& shape, bool is_hopper) {
  const bool is_half = shape.dtype == DType::Float16 || shape.dtype == DType::BFloat16;
  if (!is_half || shape.rows < kFewestRows || shape.width % kLoad != 0) return {};
  const at::Context& context = at::globalContext();
  if (is_hopper && context.userEnabledCuDNNSDP() && context.userEnabledCuDNN() &&
      shape.width <= kWidestOfCudnn)
    return {.op = op::cudnn_attention(), .alignment = kLoad};
  if (!shape.is_masked && context.userEnabledFlashSDP() && shape.width <= kWidestOfFlash)
    return {.op = op::flash_attention(), .alignment = kLoad};
  return {};
}

Invoke prepare_attention_on_cuda(const CallSite& site) {
  if (site.call.op != op::flash_attention() && site.call.op != op::cudnn_attention()) return {};
  std::vector<Slot> slots;
  for (const std::vector<Slot>& argument : site.argument_slots)
    for (const Slot slot : argument)
      if (std::ranges::find(slots, slot) == slots.end()) slots.push_back(slot);
  return [slots = std::move(slots), call = prepare_general(site)](at::Tensor* tensors) {
    AlignedCopies copies(tensors);
    for (const Slot slot : slots) copies.replace(slot);
    call(tensors);
  };
}

}  // namespace oxy::runtime
