#include "runtime/cuda/attention.h"

#include <ATen/Context.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "runtime/extern/general.h"

namespace oxy::runtime {

namespace {

const OperatorSchema* flash_schema() {
  static const OperatorSchema* const schema = intern_schema(
      "aten::_scaled_dot_product_flash_attention(Tensor query, Tensor key, Tensor value, float dropout_p=0., "
      "bool is_causal=False, bool return_debug_mask=False, *, float? scale=None) -> (Tensor output, Tensor "
      "logsumexp, Tensor cum_seq_q, Tensor cum_seq_k, SymInt max_q, SymInt max_k, Tensor rng_state, Tensor "
      "unused, Tensor debug_attn_mask)",
      /*is_random=*/true);
  return schema;
}

const OperatorSchema* cudnn_schema() {
  static const OperatorSchema* const schema = intern_schema(
      "aten::_scaled_dot_product_cudnn_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_bias, "
      "bool compute_log_sumexp, float dropout_p=0., bool is_causal=False, bool return_debug_mask=False, *, "
      "float? scale=None) -> (Tensor output, Tensor logsumexp, Tensor cum_seq_q, Tensor cum_seq_k, SymInt "
      "max_q, SymInt max_k, Tensor philox_seed, Tensor philox_offset, Tensor debug_attn_mask)",
      /*is_random=*/true);
  return schema;
}

constexpr uintptr_t kBytesOfLoad = 16;
constexpr int64_t kLoad = 8;             // elements of half precision in a load of 16 bytes
constexpr int64_t kWidestOfFlash = 256;  // elements of a head
constexpr int64_t kWidestOfCudnn = 128;
// Below, products that read keys and values once are as fast (a decoder's next token).
constexpr int64_t kFewestRows = 16;

}  // namespace

// docs/gpu.md has the times. The memory-efficient kernel, which alone takes a mask on older cards, is no
// faster faster than products and a generated softmax, and neither is one of float32.
AttentionOperator attention_on_cuda(const AttentionShape& shape, bool is_hopper) {
  const bool is_half = shape.dtype == DType::Float16 || shape.dtype == DType::BFloat16;
  if (!is_half || shape.rows < kFewestRows || shape.width % kLoad != 0) return {};
  const at::Context& context = at::globalContext();
  if (is_hopper && context.userEnabledCuDNNSDP() && context.userEnabledCuDNN() &&
      shape.width <= kWidestOfCudnn)
    return {.op = cudnn_schema(), .alignment = kLoad};
  if (!shape.is_masked && context.userEnabledFlashSDP() && shape.width <= kWidestOfFlash)
    return {.op = flash_schema(), .alignment = kLoad};
  return {};
}

bool loads_wide_words(const OperatorSchema& op) {
  return &op == flash_schema() || &op == cudnn_schema();
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
