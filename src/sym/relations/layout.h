// How sizes and strides lie in memory, as conditions: what PyTorch computes of numbers when a tensor is made
// (c10/core/Contiguity.h, c10/core/MemoryFormat.h), with the same answers for all numbers.
//
// Sizes and strides are those of one tensor, one of each a dimension, in elements.
#pragma once

#include <functional>
#include <span>

#include "sym/relations/condition.h"

namespace oxy::sym {

Condition contiguous(std::span<const Expr> sizes, std::span<const Expr> strides);
// Dense, with the channels (dimension 1) innermost. False unless there are `spatial` + 2 dimensions.
Condition channels_last_contiguous(std::span<const Expr> sizes, std::span<const Expr> strides,
                                   size_t spatial);
// The strides grow in that order, whether or not the elements are dense.
Condition channels_last_strides(std::span<const Expr> sizes, std::span<const Expr> strides, size_t spatial);
// Each element of a block of memory once, in some order of the dimensions: that of the strides, as `is_less`
// tells for two dimensions that both have more than one index.
Condition non_overlapping_and_dense(std::span<const Expr> sizes, std::span<const Expr> strides,
                                    const std::function<bool(const Expr&, const Expr&)>& is_less);

}  // namespace oxy::sym
