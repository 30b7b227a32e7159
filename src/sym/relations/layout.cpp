#include "sym/relations/layout.h"

#include <numeric>

namespace oxy::sym {

namespace {

// Dimensions from the innermost to the outermost: the channels, the space, the batch.
std::vector<size_t> channels_last_order(size_t spatial) {
  std::vector<size_t> order{1};
  for (size_t d = spatial + 1; d > 1; --d) order.push_back(d);
  order.push_back(0);
  return order;
}

}  // namespace

Condition contiguous(std::span<const Expr> sizes, std::span<const Expr> strides) {
  std::vector<Condition> dense;
  // Strides are computed with or without max(size, 1). They differ only if there are no elements.
  Expr expected = 1;
  Expr expected_of_some = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    dense.push_back(Condition::any(
        {equal(sizes[d], 1), equal(strides[d], expected), equal(strides[d], expected_of_some)}));
    expected = expected * sizes[d];
    expected_of_some = expected_of_some * max(sizes[d], 1);
  }
  return Condition::any({Condition::all(std::move(dense)), equal(product(sizes), 0)});
}

Condition channels_last_contiguous(std::span<const Expr> sizes, std::span<const Expr> strides,
                                   size_t spatial) {
  if (sizes.size() != spatial + 2) return false;
  std::vector<Condition> dense;
  Expr expected = 1;
  for (const size_t d : channels_last_order(spatial)) {
    dense.push_back(Condition::any({equal(sizes[d], 1), equal(strides[d], expected)}));
    expected = expected * sizes[d];
  }
  return Condition::all(std::move(dense));
}

Condition channels_last_strides(std::span<const Expr> sizes, std::span<const Expr> strides, size_t spatial) {
  if (sizes.size() != spatial + 2) return false;
  std::vector<Condition> parts{not_equal(strides[1], 0)};
  Expr least = 0;
  for (const size_t d : channels_last_order(spatial)) {
    parts.push_back(not_equal(sizes[d], 0));
    parts.push_back(less_equal(least, strides[d]));
    // A batch of single pixels, whose strides are all alike, counts as contiguous.
    if (d == 0) parts.push_back(not_equal(least, strides[1]));
    least = strides[d] * max(sizes[d], 1);
  }
  return Condition::all(std::move(parts));
}

Condition non_overlapping_and_dense(std::span<const Expr> sizes, std::span<const Expr> strides,
                                    const std::function<bool(const Expr&, const Expr&)>& is_less) {
  std::vector<size_t> order;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (less(sizes[d], 2) == Condition(true)) continue;
    size_t position = order.size();
    while (position > 0 && is_less(strides[d], strides[order[position - 1]])) --position;
    order.insert(order.begin() + static_cast<std::ptrdiff_t>(position), d);
  }
  std::vector<Condition> dense;
  Expr expected = 1;
  for (const size_t d : order) {
    dense.push_back(Condition::any({less(sizes[d], 2), equal(strides[d], expected)}));
    expected = expected * max(sizes[d], 1);
  }
  return Condition::all(std::move(dense));
}

}  // namespace oxy::sym
