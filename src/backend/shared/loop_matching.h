// Writes a pointwise computation over the loops of a reduction that reads its result, or of a scan whose
// result it reads, so that both can be one kernel: a batch's rows and columns are walked in another order,
// some loops are divided, and some run backwards.
#pragma once

#include <optional>

#include "backend/shared/normal_form.h"

namespace oxy::backend {

// `pointwise` over all loops of `reducing`, the reduced ones included, where the elements of a buffer at
// `access` are those that `reducing` accesses at `accessed`, each once and in the same iteration. Nothing if
// the loops of `reducing` are no rearrangement of the pointwise ones.
std::optional<Item> over_loops_of(const Item& reducing, const Expr& accessed, const Item& pointwise,
                                  const Expr& access);

}  // namespace oxy::backend
