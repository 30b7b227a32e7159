#pragma once

#include <cstdint>
#include <functional>

#include "graph/graph.h"

namespace oxy::passes {

// Attention that a program writes. Sizes that are symbols have their values at hand.
struct AttentionSite {
  DType dtype = DType::Float32;
  int64_t batches = 0, heads = 0, rows = 0, keys = 0, width = 0;
  bool is_masked = false;
};

// An operator (query, key, value, ..., mask, ..., scale) of operands [batch, heads, rows, width] with
// elements side by side along the width.
struct AttentionKernel {
  const OperatorSchema* op = nullptr;  // null: what the program writes is as fast
  bool takes_float_mask = false;       // beside operands of half precision
  bool takes_nothing = false;          // operands without elements
  int64_t alignment = 1;               // elements that divide where rows of operands and the mask begin
};

// The kernel that the device has for it. Without this function the pass does nothing.
using ChooseAttention = std::function<AttentionKernel(const AttentionSite& site)>;

// softmax(query @ keys^T * scale + mask) @ values, as products, becomes one operator. The mask may be added,
// or filled in where a condition holds, if the number is so low that it hides scores.
//
// Results are rounded otherwise. A row whose keys are all hidden by -inf gives NaN, as it does in products.
// Scores of inf or NaN that the program fills make NaN of a row here, and a row whose scores are all -inf
// because of its operands, not of its mask, gives 0.
graph::Graph recognise_attention(const graph::Graph& source, const ChooseAttention& choose);

}  // namespace oxy::passes
