#include "trace/functional/overlap.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <span>

#include "sym/hints.h"

namespace oxy::trace {

bool may_overlap(const TensorMeta& meta) {
  if (is_non_overlapping_and_dense(meta)) return false;
  std::vector<std::pair<Expr, Expr>> dims;  // stride, size
  for (size_t d = 0; d < meta.sizes.size(); ++d) {
    if (meta.sizes[d] == Expr(0)) return false;
    if (!(meta.sizes[d] == Expr(1))) dims.emplace_back(meta.strides[d], meta.sizes[d]);
  }
  // The order is a guess where strides are symbols. What follows holds for all their values.
  std::ranges::stable_sort(dims, {}, [](const auto& dim) { return sym::estimate(dim.first); });
  Expr reach = 0;  // of the last element of the dimensions so far
  for (const auto& [stride, size] : dims) {
    if (!sym::known_less(reach, stride)) return true;
    reach = reach + stride * (size - 1);
  }
  return false;
}

namespace {

// A number that an index may add to an address: stride * k with low <= k <= high.
struct Term {
  int64_t stride = 0;
  int64_t low = 0;
  int64_t high = 0;
};

// Whether terms [at, end), largest strides first, can add up to `sum`. `steps` bounds the search: none left
// counts as yes.
bool can_reach(std::span<const Term> terms, int64_t sum, int& steps) {
  if (terms.empty()) return sum == 0;
  if (--steps < 0) return true;
  int64_t low = 0;
  int64_t high = 0;
  for (const Term& rest : terms.subspan(1)) {
    low += rest.stride * rest.low;
    high += rest.stride * rest.high;
  }
  const Term& term = terms.front();
  const auto floor = [&](int64_t a) { return a / term.stride - (a % term.stride < 0 ? 1 : 0); };
  const int64_t first = std::max(term.low, -floor(high - sum));
  const int64_t last = std::min(term.high, floor(sum - low));
  for (int64_t k = first; k <= last; ++k)
    if (can_reach(terms.subspan(1), sum - term.stride * k, steps)) return true;
  return false;
}

}  // namespace

bool may_share_elements(const TensorMeta& a, const TensorMeta& b) {
  constexpr int kMostSteps = 2000;
  if (item_size(a.dtype) != item_size(b.dtype)) return true;
  std::map<int64_t, Term, std::greater<>> terms;
  const auto add = [&](const TensorMeta& meta, int64_t sign) {
    for (size_t d = 0; d < meta.sizes.size(); ++d) {
      const std::optional<int64_t> size = meta.sizes[d].as_constant();
      const std::optional<int64_t> stride = meta.strides[d].as_constant();
      if (!size || !stride) return false;
      if (*stride == 0 || *size <= 1) continue;
      Term& term = terms[*stride];
      term.stride = *stride;
      (sign > 0 ? term.high : term.low) += sign * (*size - 1);
    }
    return true;
  };
  const auto is_empty = [](const TensorMeta& meta) {
    return std::ranges::any_of(meta.sizes, [](const Expr& size) { return size == Expr(0); });
  };
  if (is_empty(a) || is_empty(b)) return false;
  const std::optional<int64_t> distance = (b.storage_offset - a.storage_offset).as_constant();
  if (!distance || !add(a, 1) || !add(b, -1)) return true;
  std::vector<Term> sorted;
  for (const auto& [stride, term] : terms) sorted.push_back(term);
  int steps = kMostSteps;
  return can_reach(sorted, *distance, steps);
}

}  // namespace oxy::trace
