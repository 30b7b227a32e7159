// Lowerings of losses.
#pragma once

#include "ops/core/registry.h"

namespace oxy::ops::lowerings {

using loop::LoweringContext;

void nll_loss(LoweringContext& context, const graph::Node& node);  // nll_loss_forward
void mse_loss(LoweringContext& context, const graph::Node& node);

}  // namespace oxy::ops::lowerings
