// Lowerings of operators that make tensors from numbers: element functions without inputs.
#pragma once

#include "ops/core/registry.h"

namespace oxy::ops::lowerings {

using loop::LoweringContext;

void zeros(LoweringContext& context, const graph::Node& node);  // also `empty`, whose elements are anything
void ones(LoweringContext& context, const graph::Node& node);
void full(LoweringContext& context, const graph::Node& node);  // by the argument named fill_value, value or s
void arange(LoweringContext& context, const graph::Node& node);
void linspace(LoweringContext& context, const graph::Node& node);
void eye(LoweringContext& context, const graph::Node& node);

}  // namespace oxy::ops::lowerings
