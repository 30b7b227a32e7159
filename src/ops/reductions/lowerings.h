// Lowerings of reductions. Sums accumulate in the result's compute type; results are rounded to the result's
// type by whoever stores them.
#pragma once

#include "ops/core/registry.h"

namespace oxy::ops::lowerings {

using loop::LoweringContext;

void sum(LoweringContext& context, const graph::Node& node);   // (self, dtype) or (self, dim, keepdim, dtype)
void mean(LoweringContext& context, const graph::Node& node);  // likewise
void prod(LoweringContext& context,
          const graph::Node& node);  // (self, dtype) or (self, int dim, keepdim, dtype)
void amax(LoweringContext& context, const graph::Node& node);  // (self, dims, keepdim), or (self)
void amin(LoweringContext& context, const graph::Node& node);
void max_dim(LoweringContext& context, const graph::Node& node);  // (self, dim, keepdim) -> values, indices
void min_dim(LoweringContext& context, const graph::Node& node);
void argmax(LoweringContext& context, const graph::Node& node);  // (self, dim?, keepdim)
void argmin(LoweringContext& context, const graph::Node& node);
void any(LoweringContext& context, const graph::Node& node);  // (self), (self, dim(s), keepdim)
void all(LoweringContext& context, const graph::Node& node);
void var(LoweringContext& context, const graph::Node& node);  // (self, dims, correction, keepdim)
void std_deviation(LoweringContext& context, const graph::Node& node);
void var_mean(LoweringContext& context, const graph::Node& node);
void std_mean(LoweringContext& context, const graph::Node& node);
void logsumexp(LoweringContext& context, const graph::Node& node);
void vector_norm(LoweringContext& context, const graph::Node& node);  // (self, ord, dim, keepdim, dtype)
// scans.cpp:
void cumsum(LoweringContext& context, const graph::Node& node);        // (self, dim, dtype)
void cumprod(LoweringContext& context, const graph::Node& node);       // likewise
void logcumsumexp(LoweringContext& context, const graph::Node& node);  // (self, dim)

}  // namespace oxy::ops::lowerings
