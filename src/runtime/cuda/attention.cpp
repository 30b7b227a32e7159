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

}  // namespace

// docs/gpu.md has the times. The memory-efficient kernel, which alone takes a mask on older cards, is no
// faster than products and a generated softmax, and neither is one of float32.
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

bool loads_wide_words(const OperatorSchema& op) {
  return &op == op::flash_attention() || &op == op::cudnn_attention();
}

Invoke prepare_attention_on_cuda(const CallSite& site) {
  std::vector<Slot> slots;
  for (const std::vector<Slot>& argument : site.argument_slots)
    for (const Slot slot : argument)
      if (std::ranges::find(slots, slot) == slots.end()) slots.push_back(slot);
  return [slots = std::move(slots), call = prepare_general(site)](at::Tensor* tensors) {
    std::vector<std::pair<Slot, at::Tensor>> given;
    for (const Slot slot : slots) {
      at::Tensor& tensor = tensors[slot];
      if (reinterpret_cast<uintptr_t>(tensor.const_data_ptr()) % kBytesOfLoad == 0) continue;
      given.emplace_back(slot, tensor.clone());
      std::swap(given.back().second, tensor);
    }
    call(tensors);
    for (auto& [slot, tensor] : given) std::swap(tensor, tensors[slot]);
  };
}

}  // namespace oxy::runtime
