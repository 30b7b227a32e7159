// Lowerings of views: index transforms, which cost nothing. Sizes are those of the result's metadata.
#pragma once

#include "ops/core/registry.h"

namespace oxy::ops::lowerings {

using loop::LoweringContext;

void reshape(LoweringContext& context,
             const graph::Node& node);  // view, reshape, _unsafe_view, unsqueeze, squeeze
void expand(LoweringContext& context, const graph::Node& node);
void permute(LoweringContext& context, const graph::Node& node);
void transpose(LoweringContext& context, const graph::Node& node);
void t(LoweringContext& context, const graph::Node& node);
void slice(LoweringContext& context, const graph::Node& node);
void select(LoweringContext& context, const graph::Node& node);
void split(LoweringContext& context,
           const graph::Node& node);  // also split_with_sizes, by the results' sizes
void unbind(LoweringContext& context, const graph::Node& node);
void diagonal(LoweringContext& context, const graph::Node& node);
void as_strided(LoweringContext& context,
                const graph::Node& node);  // of a dense tensor with constant strides
void unfold(LoweringContext& context, const graph::Node& node);
// Not views, but index transforms all the same.
void repeat(LoweringContext& context, const graph::Node& node);
void flip(LoweringContext& context, const graph::Node& node);
void roll(LoweringContext& context, const graph::Node& node);

}  // namespace oxy::ops::lowerings
