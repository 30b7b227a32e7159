#include "backend/nests/outer_loops.h"

#include "loop/variables.h"

namespace oxy::backend {

namespace {

constexpr double kShortReduction = 8;  // below this many elements, lanes run over the results

Item with_loop_first(const Item& item, size_t first) {
  Item moved = item;
  moved.extents.erase(moved.extents.begin() + static_cast<std::ptrdiff_t>(first));
  moved.extents.insert(moved.extents.begin(), item.extents[first]);
  auto renamed = [&](const Expr& e) {
    if (e.is_constant()) return e;
    return sym::substitute(e, [&](int64_t id) -> std::optional<Expr> {
      for (size_t k = 0; k <= first; ++k)
        if (nest_variable(static_cast<int64_t>(k), item.extents[k]).variable_id() == id)
          return nest_variable(k == first ? 0 : static_cast<int64_t>(k + 1), item.extents[k]);
      return std::nullopt;
    });
  };
  for (Expr& e : moved.expressions) e = renamed(e);
  for (ItemStore& store : moved.stores) store.offset = renamed(store.offset);
  return moved;
}

}  // namespace

std::optional<Item> independent_scatter(const IdVector<StepId, Item>& items, const Group& group, int lanes) {
  const Item& item = items[group.steps[0]];
  if (group.steps.size() > 1 || item.is_reduction() || item.stores.size() != 1 || item.loop_count < 2)
    return std::nullopt;
  const ItemStore& store = item.stores[0];
  if (store.mode != loop::StoreMode::AtomicAdd && !store.in_order) return std::nullopt;
  for (size_t k = 0; k < item.loop_count; ++k) {
    auto linear =
        sym::linear_in(store.offset, nest_variable(static_cast<int64_t>(k), item.extents[k]).variable_id());
    if (!linear || !(linear->first == Expr(1)) || !sym::known_divisible(linear->second, item.extents[k]))
      continue;
    if (estimate(item.extents[k]) < lanes) continue;
    return with_loop_first(item, k);
  }
  return std::nullopt;
}

VectorAxis choose_axis(const IdVector<StepId, Item>& items, const Group& group,
                       const std::vector<LoopVariable>& outer, int lanes) {
  const size_t depth = outer.size();
  bool any_loops = depth > 0;
  bool any_reduction = false;
  for (StepId step : group.steps) {
    const Item& item = items[step];
    if (item.loop_count != depth) return VectorAxis::Phase;
    any_reduction = any_reduction || item.is_reduction();
  }
  if (!any_reduction) return any_loops ? VectorAxis::Outer : VectorAxis::None;
  if (depth == 0) return VectorAxis::Phase;
  double outer_extent = static_cast<double>(estimate(outer.back().extent));
  int votes = 0;
  bool is_short = true;
  for (StepId step : group.steps) {
    const Item& item = items[step];
    if (!item.is_reduction()) continue;
    double length = 1;
    for (size_t k = item.loop_count; k < item.extents.size(); ++k)
      length *= static_cast<double>(estimate(item.extents[k]));
    is_short = is_short && length <= kShortReduction;
    votes += loads_across(item);
  }
  if (votes > 0 && outer_extent >= 4) return VectorAxis::Outer;
  if (is_short && outer_extent >= 2 * lanes) return VectorAxis::Outer;
  return VectorAxis::Phase;
}

}  // namespace oxy::backend
