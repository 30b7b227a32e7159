// Results of a call that are no tensors and that its data decide.
#pragma once

#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "cpy/ref.h"
#include "sym/expr.h"
#include "sym/relations/condition.h"

namespace oxy::driver {

// The ints and bools of eval::Capture::computed, once the graph has run: as Python computes them, whose ints
// have no limit. `symbols`: values by id. The GIL is held.
std::vector<cpy::Ref> computed_objects(std::span<const std::variant<sym::Expr, sym::Condition>> computed,
                                       std::span<const int64_t> symbols);

}  // namespace oxy::driver
