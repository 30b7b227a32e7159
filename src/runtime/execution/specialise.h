// Plans with symbolic sizes, for the sizes of one call.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/plan.h"

namespace oxy::runtime {

// Where a symbol's value is read: a size or stride of an input.
struct SymbolSource {
  int64_t variable = -1;
  int32_t input = -1;
  int32_t dimension = -1;
  bool is_stride = false;
};

// The symbols of a plan with their sources, ordered by variable. Unsupported if a symbol is not itself the
// size or the stride of some input.
std::vector<SymbolSource> symbols_of(const plan::Plan& plan);

// The plan with every symbol replaced: values[i] is that of symbols[i]. Kernel sources are left out.
plan::Plan specialise(const plan::Plan& plan, std::span<const SymbolSource> symbols,
                      std::span<const int64_t> values);

}  // namespace oxy::runtime
