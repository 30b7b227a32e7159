#include "backend/shared/loop_matching.h"

#include <algorithm>

namespace oxy::backend {

namespace {

struct Loop {
  Expr variable;
  Expr extent;
  Expr stride;  // in what is accessed
  bool is_taken = false;
};

// Nothing if the access is not linear in some loop, or does not depend on it.
std::optional<std::vector<Loop>> loops_of(const Item& item, const Expr& access) {
  std::vector<Loop> loops;
  for (size_t k = 0; k < item.extents.size(); ++k) {
    const Expr variable = nest_variable(static_cast<int64_t>(k), item.extents[k]);
    const std::optional<Expr> stride = stride_of(access, variable);
    if (!stride || *stride == Expr(0)) return std::nullopt;
    loops.push_back({variable, item.extents[k], *stride});
  }
  return loops;
}

// The variable of `loop` as a sum over those of `parts` that divide it, which are taken, where one iteration
// of it is `stride` elements.
std::optional<Expr> as_sum(const Loop& loop, const Expr& stride, std::vector<Loop>& parts) {
  Expr sum = 0;
  Expr count = 1;
  while (!(count == loop.extent)) {
    const auto part =
        std::ranges::find_if(parts, [&](const Loop& p) { return !p.is_taken && p.stride == stride * count; });
    if (part == parts.end()) return std::nullopt;
    part->is_taken = true;
    sum = sum + part->variable * count;
    count = count * part->extent;
  }
  return sum;
}

// The same, where the parts may also go through the loop from its end.
std::optional<Expr> as_sum_either_way(const Loop& loop, std::vector<Loop>& parts) {
  std::vector<Loop> taken = parts;
  std::optional<Expr> sum = as_sum(loop, loop.stride, taken);
  if (!sum) {
    taken = parts;
    const std::optional<Expr> from_end = as_sum(loop, loop.stride * -1, taken);
    if (!from_end) return std::nullopt;
    sum = loop.extent - 1 - *from_end;
  }
  parts = std::move(taken);
  return sum;
}

}  // namespace

std::optional<Item> over_loops_of(const Item& reducing, const Expr& accessed, const Item& pointwise,
                                  const Expr& access) {
  const auto from = loops_of(pointwise, access);
  auto to = loops_of(reducing, accessed);
  if (!from || !to) return std::nullopt;
  std::vector<Expr> sums;
  for (const Loop& loop : *from) {
    std::optional<Expr> sum = as_sum_either_way(loop, *to);
    if (!sum) return std::nullopt;
    sums.push_back(std::move(*sum));
  }
  if (!std::ranges::all_of(*to, &Loop::is_taken)) return std::nullopt;

  const auto rewritten = [&](const Expr& e) {
    if (e.is_constant()) return e;
    return sym::substitute(e, [&](int64_t id) -> std::optional<Expr> {
      for (size_t k = 0; k < sums.size(); ++k)
        if ((*from)[k].variable.variable_id() == id) return sums[k];
      return std::nullopt;
    });
  };
  if (!(rewritten(access) == accessed)) return std::nullopt;
  Item item = pointwise;
  item.extents = reducing.extents;
  item.loop_count = reducing.extents.size();
  for (Expr& e : item.expressions) e = rewritten(e);
  for (ItemStore& s : item.stores) s.offset = rewritten(s.offset);
  return item;
}

}  // namespace oxy::backend
