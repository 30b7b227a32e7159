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
       .shape = shapes::flash_attention},
      {.name = "aten::_scaled_dot_product_flash_attention_for_cpu_backward",
       .schema =
           "aten::_scaled_dot_product_flash_attention_for_cpu_backward(Tensor grad_out, Tensor query, Tensor "
           "key, Tensor value, Tensor out, Tensor logsumexp, float dropout_p, bool is_causal, *, Tensor? "
           "attn_mask=None, float? scale=None) -> (Tensor grad_query, Tensor grad_key, Tensor grad_value)",
       .shape = shapes::flash_attention_backward},
  };
  return table;
}

}  // namespace oxy::ops
