#include "runtime/cuda/attention.h"

#include <ATen/Context.h>

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
  if (!shape.is_masked) {
    if (!context.userEnabledFlashSDP() || shape.width > kWidestOfFlash) return {};
    return {.op = flash_schema(), .alignment = kLoad};
  }
  if (!is_hopper || !context.userEnabledCuDNNSDP() || !context.userEnabledCuDNN() ||
      shape.width > kWidestOfCudnn)
    return {};
  return {.op = cudnn_schema(), .alignment = kLoad};
}

}  // namespace oxy::runtime
