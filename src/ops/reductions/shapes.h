// Shape rules of reductions, scans and sorts.
#pragma once

#include "ops/core/shape_arguments.h"

namespace oxy::ops::shapes {

// (self, *, dtype) or (self, dim, keepdim, dtype). Integers and Bool are summed as Int64.
Metas sum(const ShapeContext& context);
Metas nansum(const ShapeContext& context);
Metas mean(const ShapeContext& context);
Metas extremum(const ShapeContext& context);  // amax, amin, max, min: (self[, dim, keepdim]), keeps the type
Metas extremum_with_index(const ShapeContext& context);  // (self, dim, keepdim) -> values, indices
Metas both_extrema(const ShapeContext& context);         // aminmax(self, *, dim, keepdim)
Metas arg_extremum(const ShapeContext& context);         // (self, dim, keepdim) -> Int64
Metas any_or_all(const ShapeContext& context);           // (self[, dim, keepdim]) -> Bool (UInt8 stays)
Metas count_nonzero(const ShapeContext& context);        // (self, dim) -> Int64
Metas variance(const ShapeContext& context);             // (self, dim, *, correction, keepdim)
Metas variance_and_mean(const ShapeContext& context);
Metas log_sum_exp(const ShapeContext& context);      // (self, dim, keepdim)
Metas norm(const ShapeContext& context);             // (self, p) or (self, p, dim, keepdim[, dtype])
Metas whole_to_scalar(const ShapeContext& context);  // median: (self) -> the same type
Metas kth_value(const ShapeContext& context);        // (self, k, dim, keepdim) -> values, indices
Metas scan(const ShapeContext& context);             // cumsum, cumprod: (self, dim, *, dtype)
Metas histogram(const ShapeContext& context);        // histc(self, bins, min, max)
Metas float_scan(const ShapeContext& context);       // logcumsumexp(self, dim)
Metas scan_with_index(const ShapeContext& context);  // cummax, cummin(self, dim)
Metas sort(const ShapeContext& context);             // (self, dim, descending)
Metas top_k(const ShapeContext& context);            // (self, k, dim, largest, sorted)
Metas distance_matrix(const ShapeContext& context);
Metas gradient_of_distance_matrix(const ShapeContext& context);
Metas distances_of_rows(const ShapeContext& context);      // _pdist_forward
Metas gradient_of_distances(const ShapeContext& context);  // _pdist_backward
Metas renorm(const ShapeContext& context);
Metas counts_and_edges(
    const ShapeContext& context);  // histogram.bin_ct: counts, edges  // _cdist_forward(x1, x2, p, mode)

Metas trace(const ShapeContext& context);
Metas truth(const ShapeContext& context);  // _is_all_true, _is_any_true

}  // namespace oxy::ops::shapes
