// Writes a pointwise computation over the loops of a reduction that reads its result, so that both can be one
// kernel: a batch's rows and columns are walked in another order, and some loops are divided.
#pragma once

#include <optional>

#include "backend/shared/normal_form.h"

namespace oxy::backend {

// `pointwise` over all loops of `reader`, the reduced ones included, where the elements that it stores at
// `store` are those that `reader` reads at `load`, each once and in the same iteration. Nothing if the loops
// of `reader` are no rearrangement of the pointwise ones.
std::optional<Item> over_loops_of(const Item& reader, const Expr& load, const Item& pointwise,
                                  const Expr& store);

}  // namespace oxy::backend
