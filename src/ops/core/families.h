// The families of operators: ops/<family>.cpp holds the table.
#pragma once

#include <span>

#include "ops/core/registry.h"

namespace oxy::ops {

using Family = std::span<const OperatorEntry>;

Family pointwise_operators();
Family comparison_operators();
Family inplace_operators();
Family reduction_operators();
Family view_operators();
Family creation_operators();
Family random_operators();
Family indexing_operators();
Family normalization_operators();
Family matmul_operators();
Family convolution_operators();
Family pooling_operators();
Family attention_operators();
Family loss_operators();

inline constexpr Family (*kFamilies[])() = {
    pointwise_operators,     comparison_operators, inplace_operators,     reduction_operators,
    view_operators,          creation_operators,   random_operators,      indexing_operators,
    normalization_operators, matmul_operators,     convolution_operators, pooling_operators,
    attention_operators,     loss_operators,
};

}  // namespace oxy::ops
