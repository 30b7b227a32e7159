// Views as index transforms: from an index into the view to the index into what is viewed.
#pragma once

#include <optional>
#include <vector>

#include "loop/builder.h"

namespace oxy::loop {

// The variables d0, d1, ... that stand for an index into a view of these sizes (0 where the size is 1).
Index view_index(const std::vector<Expr>& sizes);
// e with d0, d1, ... replaced by `index`.
Expr at(const Expr& e, const Index& index);
Index at(const Index& map, const Index& index);

// `index` into a tensor of sizes `to` as the index of the same element, in row-major order, into sizes
// `from`. Dimensions that merely merge or split need no division; the element counts are equal.
Index reshape_index(const std::vector<Expr>& from, const std::vector<Expr>& to, const Index& index);
// Unsupported unless each size is 1 or the one that it is broadcast to. What is known to be equal is written
// alike (graph/sizes.h); of others the elements would be somewhere else.
void require_broadcast(const std::vector<Expr>& from, const std::vector<Expr>& to);
// `index` into a tensor that is broadcast: aligned at the last dimension, 0 in dimensions of size 1.
Index broadcast_index(const std::vector<Expr>& from, const Index& index);
// Position `linear` in memory of a dense tensor as its index; nothing unless the strides are those of a dense
// tensor.
std::optional<Index> unravel(const Expr& linear, const std::vector<Expr>& sizes,
                             const std::vector<Expr>& strides);
// The position in row-major order.
Expr ravel(const Index& index, const std::vector<Expr>& sizes);

// A view with `map` into a buffer with `strides` as strides and offset of its own; nothing if it is not
// affine.
struct StridedView {
  std::vector<Expr> strides;
  Expr offset = 0;
};
std::optional<StridedView> strided(const Index& map, const std::vector<Expr>& sizes,
                                   const std::vector<Expr>& buffer_strides);

// Equal, the strides of dimensions of size 1 (and of empty tensors) aside.
bool same_strides(const std::vector<Expr>& sizes, const std::vector<Expr>& a, const std::vector<Expr>& b);

}  // namespace oxy::loop
