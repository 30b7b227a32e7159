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
Family linear_algebra_operators();
Family fourier_operators();
Family recording_operators();

struct FamilyOfOperators {
  Family (*operators)();
  bool is_cheap = false;                            // those with a lowering, as Traits::is_cheap means it
  HostOperands host_operands = HostOperands::None;  // of those that state none
};

inline constexpr FamilyOfOperators kFamilies[] = {
    {.operators = pointwise_operators, .is_cheap = true, .host_operands = HostOperands::Numbers},
    {.operators = comparison_operators, .is_cheap = true, .host_operands = HostOperands::Numbers},
    {.operators = inplace_operators},
    {.operators = reduction_operators},
    {.operators = view_operators, .is_cheap = true},
    {.operators = creation_operators, .is_cheap = true},
    {.operators = random_operators},
    {.operators = indexing_operators},
    {.operators = normalization_operators},
    {.operators = matmul_operators},
    {.operators = convolution_operators},
    {.operators = pooling_operators},
    {.operators = attention_operators},
    {.operators = linear_algebra_operators},
    {.operators = fourier_operators},
    {.operators = loss_operators},
    {.operators = recording_operators},
};

}  // namespace oxy::ops
