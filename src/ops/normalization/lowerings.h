// Lowerings of normalisations and softmax: one reduction pass (Welford moments, or maximum and sum of
// exponentials together) and one pointwise pass that is fused into its users.
#pragma once

#include "ops/core/registry.h"

namespace oxy::ops::lowerings {

using loop::LoweringContext;

void layer_norm(LoweringContext& context, const graph::Node& node);  // native_layer_norm
void rms_norm(LoweringContext& context, const graph::Node& node);    // _fused_rms_norm
void group_norm(LoweringContext& context, const graph::Node& node);  // native_group_norm
void batch_norm(LoweringContext& context,
                const graph::Node& node);  // native_batch_norm with training == false
void batch_norm_no_training(LoweringContext& context, const graph::Node& node);
void softmax(LoweringContext& context, const graph::Node& node);
void log_softmax(LoweringContext& context, const graph::Node& node);
void safe_softmax(LoweringContext& context, const graph::Node& node);  // 0 where all of a row is -inf
void softmax_rows(LoweringContext& context, const graph::Node& node);

}  // namespace oxy::ops::lowerings
