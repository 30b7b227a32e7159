#include "runtime/cpu/attention.h"

#include <algorithm>

#include "runtime/cpu/handlers.h"
#include "runtime/cpu/memory.h"

namespace oxy::runtime {

namespace {

const OperatorSchema* attention_schema() {
  static const OperatorSchema* const schema = intern_schema(
      "aten::_scaled_dot_product_flash_attention_for_cpu(Tensor query, Tensor key, Tensor value, float "
      "dropout_p=0., bool is_causal=False, *, Tensor? attn_mask=None, float? scale=None) -> (Tensor output, "
      "Tensor logsumexp)");
  return schema;
}

// Where scores stay in the caches, products of float32 and the generated softmax are mostly faster. A mask is
// read by the softmax, which takes longer then. With wide heads neither way is faster for all sizes
// (docs/benchmarks.md, benchmarks/attention.py).
constexpr int64_t kFewestScores = 1 << 19, kFewestMaskedScores = 1 << 17;
constexpr int64_t kWidestHead = 64;
// Batched products of half precision are slow, but for one row (a decoder's next token).
constexpr int64_t kFewestHalfRows = 8;

bool pays(const AttentionShape& shape) {
  if (shape.dtype == DType::Float16 || shape.dtype == DType::BFloat16) return shape.rows >= kFewestHalfRows;
  const int64_t scores = shape.batches * shape.heads * shape.rows * shape.keys;
  if (shape.dtype == DType::Float64) return scores >= kFewestMaskedScores;
  return shape.width <= kWidestHead && scores >= (shape.is_masked ? kFewestMaskedScores : kFewestScores);
}

}  // namespace

AttentionOperator attention_on_cpu(const AttentionShape& shape) {
  if (!pays(shape)) return {};
  return {.op = attention_schema(), .takes_float_mask = true, .takes_nothing = true};
}

// PyTorch's kernel divides by sizes: what has no elements has a way of its own. A sum over no keys is 0.
Invoke prepare_attention(const CallSite& site) {
  const auto is_empty = [&](size_t argument) {
    return site.spec(site.tensor(argument)).element_count() == 0;
  };
  if (!is_empty(0) && !is_empty(1) && !is_empty(2)) return {};
  std::vector<std::pair<ResultSlot, TensorSpec>> results;
  for (const ResultSlot& result : site.results)
    if (result.slot != kNoSlot) results.emplace_back(result, site.spec(result.slot));
  return [results](at::Tensor* tensors) {
    for (const auto& [result, spec] : results) {
      at::Tensor& tensor = tensors[result.slot];
      if (!result.planned) tensor = empty_on_cpu(spec);
      tensor.zero_();
    }
  };
}

}  // namespace oxy::runtime
