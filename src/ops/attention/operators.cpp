// The table of fused attention.
#include "ops/attention/shapes.h"
#include "ops/core/families.h"

namespace oxy::ops {

Family attention_operators() {
  static const OperatorEntry table[] = {
      {.name = "aten::_scaled_dot_product_flash_attention_for_cpu",
       .schema = "aten::_scaled_dot_product_flash_attention_for_cpu(Tensor query, Tensor key, Tensor value, "
                 "float dropout_p=0., bool is_causal=False, *, Tensor? attn_mask=None, float? scale=None) -> "
                 "(Tensor output, Tensor logsumexp)",
       .shape = shapes::attention_for_cpu},
      {.name = "aten::_scaled_dot_product_flash_attention_for_cpu_backward",
       .schema =
           "aten::_scaled_dot_product_flash_attention_for_cpu_backward(Tensor grad_out, Tensor query, Tensor "
           "key, Tensor value, Tensor out, Tensor logsumexp, float dropout_p, bool is_causal, *, Tensor? "
           "attn_mask=None, float? scale=None) -> (Tensor grad_query, Tensor grad_key, Tensor grad_value)",
       .shape = shapes::attention_for_cpu_backward},
      {.name = "aten::_transformer_encoder_layer_fwd",
       .schema = "aten::_transformer_encoder_layer_fwd(Tensor src, int embed_dim, int num_heads, Tensor "
                 "qkv_weight, Tensor qkv_bias, Tensor proj_weight, Tensor proj_bias, bool use_gelu, bool "
                 "norm_first, float eps, Tensor norm_weight_1, Tensor norm_bias_1, Tensor norm_weight_2, "
                 "Tensor norm_bias_2, Tensor ffn_weight_1, Tensor ffn_bias_1, Tensor ffn_weight_2, Tensor "
                 "ffn_bias_2, Tensor? mask=None, int? mask_type=None) -> Tensor",
       .shape = shapes::encoder_layer,
       .traits = {.mixes_elements = true}},
      {.name = "aten::_scaled_dot_product_efficient_attention",
       .schema = "aten::_scaled_dot_product_efficient_attention(Tensor query, Tensor key, Tensor value, "
                 "Tensor? attn_bias, bool compute_log_sumexp, float dropout_p=0., bool is_causal=False, *, "
                 "float? scale=None) -> (Tensor output, Tensor log_sumexp, Tensor philox_seed, Tensor "
                 "philox_offset)",
       .shape = shapes::efficient_attention,
       .is_random = true},
      {.name = "aten::_scaled_dot_product_cudnn_attention",
       .schema = "aten::_scaled_dot_product_cudnn_attention(Tensor query, Tensor key, Tensor value, Tensor? "
                 "attn_bias, bool compute_log_sumexp, float dropout_p=0., bool is_causal=False, bool "
                 "return_debug_mask=False, *, float? scale=None) -> (Tensor output, Tensor logsumexp, Tensor "
                 "cum_seq_q, Tensor cum_seq_k, SymInt max_q, SymInt max_k, Tensor philox_seed, Tensor "
                 "philox_offset, Tensor debug_attn_mask)",
       .shape = shapes::cudnn_attention,
       .has_result = shapes::cudnn_attention_results,
       .numbers = shapes::attention_lengths,
       .is_random = true,
       .traits = {.shares_key_heads = true}},
      {.name = "aten::_scaled_dot_product_flash_attention",
       .schema = "aten::_scaled_dot_product_flash_attention(Tensor query, Tensor key, Tensor value, float "
                 "dropout_p=0., bool is_causal=False, bool return_debug_mask=False, *, float? scale=None) -> "
                 "(Tensor output, Tensor logsumexp, Tensor cum_seq_q, Tensor cum_seq_k, SymInt max_q, SymInt "
                 "max_k, Tensor rng_state, Tensor unused, Tensor debug_attn_mask)",
       .shape = shapes::flash_attention,
       .has_result = shapes::flash_attention_results,
       .numbers = shapes::attention_lengths,
       .is_random = true},
      {.name = "aten::_scaled_dot_product_efficient_attention_backward",
       .schema = "aten::_scaled_dot_product_efficient_attention_backward(Tensor grad_out_, Tensor query, "
                 "Tensor key, Tensor value, Tensor attn_bias, Tensor out, Tensor logsumexp, Tensor "
                 "philox_seed, Tensor philox_offset, float dropout_p, bool[4] grad_input_mask, bool "
                 "is_causal=False, *, float? scale=None) -> (Tensor, Tensor, Tensor, Tensor)",
       .shape = shapes::efficient_attention_backward,
       .has_result = shapes::efficient_attention_gradients,
       .traits = {.type_check = TypeCheck::Known}},
      {.name = "aten::_scaled_dot_product_cudnn_attention_backward",
       .schema = "aten::_scaled_dot_product_cudnn_attention_backward(Tensor grad_out, Tensor query, Tensor "
                 "key, Tensor value, Tensor out, Tensor logsumexp, Tensor philox_seed, Tensor philox_offset, "
                 "Tensor attn_bias, Tensor cum_seq_q, Tensor cum_seq_k, SymInt max_q, SymInt max_k, float "
                 "dropout_p, bool is_causal, *, float? scale=None) -> (Tensor, Tensor, Tensor)",
       .shape = shapes::attention_backward,
       .traits = {.type_check = TypeCheck::Known}},
      {.name = "aten::_scaled_dot_product_flash_attention_backward",
       .schema =
           "aten::_scaled_dot_product_flash_attention_backward(Tensor grad_out, Tensor query, Tensor "
           "key, Tensor value, Tensor out, Tensor logsumexp, Tensor cum_seq_q, Tensor cum_seq_k, SymInt "
           "max_q, SymInt max_k, float dropout_p, bool is_causal, Tensor philox_seed, Tensor "
           "philox_offset, *, float? scale=None) -> (Tensor grad_query, Tensor grad_key, Tensor "
           "grad_value)",
       .shape = shapes::attention_backward,
       .traits = {.type_check = TypeCheck::Known}},
  };
  return table;
}

}  // namespace oxy::ops
