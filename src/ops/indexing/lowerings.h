// Lowerings of operators that read or write by index, join tensors, or write into a part of one. Indices that
// the user gave are checked: out of range they make the kernel report an index error.
#pragma once

#include "ops/core/registry.h"

namespace oxy::ops::lowerings {

using loop::LoweringContext;

void embedding(LoweringContext& context, const graph::Node& node);
void index(LoweringContext& context, const graph::Node& node);  // integer indices; masks are left to eager
void index_select(LoweringContext& context, const graph::Node& node);
void gather(LoweringContext& context, const graph::Node& node);
void index_copy(LoweringContext& context, const graph::Node& node);
void index_put(LoweringContext& context, const graph::Node& node);  // (self, indices, values, accumulate)
void scatter(LoweringContext& context, const graph::Node& node);    // (self, dim, index, src or value)
void scatter_add(LoweringContext& context, const graph::Node& node);
void scatter_reduce(LoweringContext& context, const graph::Node& node);  // of one element a row
void slice_scatter(LoweringContext& context, const graph::Node& node);
void select_scatter(LoweringContext& context, const graph::Node& node);
void as_strided_scatter(LoweringContext& context, const graph::Node& node);
void diagonal_scatter(LoweringContext& context, const graph::Node& node);
void diagonal_backward(LoweringContext& context, const graph::Node& node);
void diag_embed(LoweringContext& context, const graph::Node& node);
void constant_pad(LoweringContext& context, const graph::Node& node);
void cat(LoweringContext& context, const graph::Node& node);
void stack(LoweringContext& context, const graph::Node& node);
void tril(LoweringContext& context, const graph::Node& node);
void triu(LoweringContext& context, const graph::Node& node);

}  // namespace oxy::ops::lowerings
