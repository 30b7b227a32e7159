// Shape rules of operators that move elements: gathers, scatters, concatenation, padding, rearrangement.
#pragma once

#include "ops/core/shape_arguments.h"

namespace oxy::ops::shapes {

Metas cat(const ShapeContext& context);
Metas stack(const ShapeContext& context);
Metas constant_pad(const ShapeContext& context);
Metas border_pad(
    const ShapeContext& context);  // reflection and replication: (self, padding), 1 to 3 dimensions
// (self, dim, index, src or value, ...), (self, dim, index, source), (self, indices, values, accumulate)
Metas scatter(const ShapeContext& context);
Metas index_along(const ShapeContext& context);
Metas index_put(const ShapeContext& context);
Metas gather(const ShapeContext& context);
Metas contiguous_like_first(
    const ShapeContext& context);  // scatter, index_add: a contiguous result of self's shape
Metas dense_like_first(const ShapeContext& context);  // in the memory order of self
Metas select_scatter(const ShapeContext& context);
Metas as_strided_scatter(const ShapeContext& context);
Metas diagonal_scatter(const ShapeContext& context);
Metas strided_like_first(const ShapeContext& context);  // with the very strides and offset of self
Metas flip(const ShapeContext& context);
Metas masked_scatter(const ShapeContext& context);  // self and mask broadcast against each other
Metas index(const ShapeContext& context);  // x[i, j]: (self, indices), any mixture of tensors and None
Metas index_select(const ShapeContext& context);
Metas take(const ShapeContext& context);
// Of sizes that depend on data.
Metas nonzero(const ShapeContext& context);
Metas repeat_interleave(const ShapeContext& context);   // (repeats, *, output_size)
Metas unique(const ShapeContext& context);              // (self, sorted, return_inverse, return_counts)
Metas unique_consecutive(const ShapeContext& context);  // (self, return_inverse, return_counts, dim)
Metas unique_rows(const ShapeContext& context);         // (self, dim, sorted, return_inverse, return_counts)
Metas embedding(const ShapeContext& context);
Metas gradient_of_windows(const ShapeContext& context);  // unfold_backward
Metas embedding_bag(const ShapeContext& context);
Metas embedding_bag_forward(const ShapeContext& context);  // _embedding_bag_forward_only
Metas gradient_of_bag_table(const ShapeContext& context);  // _embedding_bag_backward
Metas embedding_bag_backward(const ShapeContext& context);
Metas gradient_of_bag_weights(const ShapeContext& context);
Metas embedding_backward(const ShapeContext& context);
Metas repeat(const ShapeContext& context);
Metas roll(const ShapeContext& context);
Metas bucketize(const ShapeContext& context);      // (self, boundaries, *, out_int32, right)
Metas search_sorted(const ShapeContext& context);  // (sorted, self, *, out_int32, ...)
Metas is_in(const ShapeContext& context);
Metas zeros_of_input(
    const ShapeContext& context);  // slice_backward, select_backward: (grad, input_sizes, ...)
Metas pixel_shuffle(const ShapeContext& context);
Metas pixel_unshuffle(const ShapeContext& context);
Metas channel_shuffle(const ShapeContext& context);
Metas patches_to_columns(const ShapeContext& context);  // im2col
Metas columns_to_patches(const ShapeContext& context);  // col2im

Metas diag_embed(const ShapeContext& context);
Metas rot90(const ShapeContext& context);
Metas border_pad_backward(const ShapeContext& context);

}  // namespace oxy::ops::shapes
