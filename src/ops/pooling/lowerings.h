// Lowerings of pooling with small windows and of nearest upsampling: element functions over the window. Large
// windows are left to eager.
#pragma once

#include "ops/core/registry.h"

namespace oxy::ops::lowerings {

using loop::LoweringContext;

void max_pool2d_places(LoweringContext& context, const graph::Node& node);
void max_pool2d_indices(LoweringContext& context, const graph::Node& node);
void max_pool2d_gradient(LoweringContext& context, const graph::Node& node);
void avg_pool2d(LoweringContext& context, const graph::Node& node);
void adaptive_avg_pool2d(LoweringContext& context,
                         const graph::Node& node);  // sizes that divide, 1x1 above all
void upsample_nearest2d(LoweringContext& context, const graph::Node& node);

}  // namespace oxy::ops::lowerings
