// Plans with symbolic sizes, for the sizes of one call.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/plan.h"

namespace oxy::runtime {

// The ids of the variables in a plan's sizes, in ascending order.
std::vector<int64_t> symbols_of(const plan::Plan& plan);

// The plan with every variable replaced: the one with the id symbols[i] by values[i]. Kernel sources are left
// out. sym::ArithmeticError where a size does not fit.
plan::Plan specialise(const plan::Plan& plan, std::span<const int64_t> symbols,
                      std::span<const int64_t> values);

}  // namespace oxy::runtime
