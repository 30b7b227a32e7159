// What attention adds to its scores, as one tensor.
#pragma once

#include <optional>

#include "ops/core/composer.h"
#include "passes/attention/written_attention.h"
#include "passes/rewriting/rewrite.h"

namespace oxy::passes {

struct AttentionMask {
  ValueRef tensor;  // [batch, heads, rows, keys], or 1 in the place of some, with elements side by side
  bool may_hide_rows = false;  // all keys of a row may be hidden by -inf
};

// Nothing: scores are only scaled. The type is that of the query, or float32 beside half precision if
// `may_be_float`. Unsupported if no mask does to scores what the program does.
std::optional<AttentionMask> attention_mask(const Rewriter& rewriter, ops::Composer& composer,
                                            const WrittenAttention& attention, bool may_be_float);

// [batch, heads, rows, 1], as far as the mask has them: whether it is -inf for all keys, of which there are
// some.
ValueRef hidden_rows(ops::Composer& composer, ValueRef mask);

}  // namespace oxy::passes
