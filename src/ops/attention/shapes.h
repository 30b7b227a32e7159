// Shape rules of fused attention.
#pragma once

#include "ops/core/shape_arguments.h"

namespace oxy::ops::shapes {

// _scaled_dot_product_flash_attention_for_cpu(query, key, value, ...) -> output, logsumexp
Metas attention_for_cpu(const ShapeContext& context);
// (grad_out, query, key, value, out, logsumexp, ...) -> gradients of query, key, value
Metas attention_for_cpu_backward(const ShapeContext& context);
// (query, key, value, attn_bias, compute_log_sumexp, ...) -> output, log_sumexp, philox_seed, philox_offset
Metas efficient_attention(const ShapeContext& context);
// (grad_out, query, key, value, attn_bias, ..., grad_input_mask, ...) -> gradients of query to attn_bias
Metas efficient_attention_backward(const ShapeContext& context);
std::vector<bool> efficient_attention_gradients(const ShapeContext& context);
// Likewise -> output, logsumexp, cum_seq_q, cum_seq_k, max_q, max_k, philox_seed, philox_offset,
// debug_attn_mask
Metas cudnn_attention(const ShapeContext& context);
std::vector<bool> cudnn_attention_results(const ShapeContext& context);
// (query, key, value, dropout_p, is_causal, return_debug_mask, ...) -> output, logsumexp, cum_seq_q,
// cum_seq_k, max_q, max_k, rng_state, unused, debug_attn_mask
Metas flash_attention(const ShapeContext& context);
std::vector<bool> flash_attention_results(const ShapeContext& context);
// max_q and max_k of both
std::vector<Expr> attention_lengths(const ShapeContext& context);
// (grad_out, query, key, value, ...) -> gradients of query, key, value, laid out as these
Metas attention_backward(const ShapeContext& context);
Metas encoder_layer(const ShapeContext& context);

}  // namespace oxy::ops::shapes
