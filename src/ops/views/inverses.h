// What the base of a view becomes when the view is written (ops/core/view_inverse.h).
#pragma once

#include "ops/core/view_inverse.h"

namespace oxy::ops::inverses {

// Scatters: the base with the written elements in their places.
graph::ValueId slice(ViewWrite& write);
graph::ValueId select(ViewWrite& write);
graph::ValueId unbind(ViewWrite& write);
graph::ValueId split(ViewWrite& write);
graph::ValueId split_with_sizes(ViewWrite& write);
graph::ValueId diagonal(ViewWrite& write);
graph::ValueId as_strided(ViewWrite& write);

// Reshapes: the written elements, seen as the base saw them.
graph::ValueId view(ViewWrite& write);
graph::ValueId transpose(ViewWrite& write);
graph::ValueId t(ViewWrite& write);
graph::ValueId permute(ViewWrite& write);
graph::ValueId view_as_real(ViewWrite& write);
graph::ValueId view_as_complex(ViewWrite& write);
graph::ValueId view_dtype(ViewWrite& write);

inline constexpr ViewInverse kIdentity = {.kind = ViewInverse::Kind::Identity};
constexpr ViewInverse scatter(graph::ValueId (*write)(ViewWrite&)) {
  return {.kind = ViewInverse::Kind::Scatter, .write = write};
}
constexpr ViewInverse reshape(graph::ValueId (*write)(ViewWrite&)) {
  return {.kind = ViewInverse::Kind::Reshape, .write = write};
}

}  // namespace oxy::ops::inverses
