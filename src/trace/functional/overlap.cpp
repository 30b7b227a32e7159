#include "trace/functional/overlap.h"

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <span>
#include <utility>
#include <vector>

#include "graph/sizes.h"
#include "sym/expr.h"
#include "sym/facts/always_holds.h"
#include "sym/hints.h"
#include "sym/lower_bounds.h"

namespace oxy::trace {

namespace {

// Makes sizes at least 1: without elements there is nothing to share.
void assume_elements(std::initializer_list<TensorMeta*> metas) {
  sym::LowerBounds bounds;
  for (const TensorMeta* meta : metas)
    for (const Expr& size : meta->sizes) bounds.note(size, 1);
  if (bounds.empty()) return;
  for (TensorMeta* meta : metas)
    *meta = graph::map_expressions(std::move(*meta), [&](const Expr& e) { return bounds.applied(e); });
}

bool is_less(const Expr& a, const Expr& b) {
  return sym::known_less(a, b) || sym::always_holds(sym::less(a, b));
}

}  // namespace

bool may_overlap(const TensorMeta& recorded) {
  if (is_non_overlapping_and_dense(recorded)) return false;
  TensorMeta meta = recorded;
  assume_elements({&meta});
  std::vector<std::pair<Expr, Expr>> dims;  // stride, size
  for (size_t d = 0; d < meta.sizes.size(); ++d) {
    if (meta.sizes[d] == Expr(0)) return false;
    if (!(meta.sizes[d] == Expr(1))) dims.emplace_back(meta.strides[d], meta.sizes[d]);
  }
  // The order is a guess where strides are symbols. What follows holds for all their values.
  std::ranges::stable_sort(dims, {}, [](const auto& dim) { return sym::estimate(dim.first); });
  Expr reach = 0;  // of the last element of the dimensions so far
  for (const auto& [stride, size] : dims) {
    if (!is_less(reach, stride)) return true;
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

// The same with sizes and strides that may be symbols.
struct SymbolicTerm {
  Expr stride;
  Expr low;
  Expr high;
};

bool is_number(const SymbolicTerm& term) {
  return term.stride.is_constant() && term.low.is_constant() && term.high.is_constant();
}

// What the terms but `except` add up to at most and at least.
std::pair<Expr, Expr> bounds(const std::vector<SymbolicTerm>& terms, const SymbolicTerm* except) {
  Expr low = 0;
  Expr high = 0;
  for (const SymbolicTerm& term : terms) {
    if (&term == except) continue;
    low = low + term.stride * term.low;
    high = high + term.stride * term.high;
  }
  return {low, high};
}

// Whether no values of the symbols let the terms add up to `sum`. Otherwise terms with symbols are left only
// if their indices may have to differ: of `x[:, :4]` and `x[:, 4:]` the rows have to be the same.
bool cannot_reach(std::vector<SymbolicTerm>& terms, const Expr& sum) {
  for (;;) {
    const auto [low, high] = bounds(terms, nullptr);
    if (sym::known_less(high, sum) || sym::known_less(sum, low)) return true;
    const auto is_zero = [&](const SymbolicTerm& term) {
      if (is_number(term) && sum.is_constant()) return false;
      const auto [least, most] = bounds(terms, &term);
      return sym::known_less(sum - least, term.stride) && sym::known_less(most - sum, term.stride);
    };
    const auto found = std::ranges::find_if(terms, is_zero);
    if (found == terms.end()) return false;
    terms.erase(found);
  }
}

}  // namespace

bool may_share_elements(const TensorMeta& first, const TensorMeta& second) {
  constexpr int kMostSteps = 2000;
  if (item_size(first.dtype) != item_size(second.dtype)) return true;
  const auto is_empty = [](const TensorMeta& meta) {
    return std::ranges::any_of(meta.sizes, [](const Expr& size) { return size == Expr(0); });
  };
  if (is_empty(first) || is_empty(second)) return false;
  TensorMeta a = first;
  TensorMeta b = second;
  assume_elements({&a, &b});
  std::vector<SymbolicTerm> terms;
  const auto add = [&](const TensorMeta& meta, int sign) {
    for (size_t d = 0; d < meta.sizes.size(); ++d) {
      if (meta.strides[d] == Expr(0) || meta.sizes[d] == Expr(1)) continue;
      auto term = std::ranges::find(terms, meta.strides[d], &SymbolicTerm::stride);
      if (term == terms.end()) term = terms.insert(term, {.stride = meta.strides[d], .low = 0, .high = 0});
      if (sign > 0)
        term->high = term->high + (meta.sizes[d] - 1);
      else
        term->low = term->low - (meta.sizes[d] - 1);
    }
  };
  add(a, 1);
  add(b, -1);
  const Expr distance = b.storage_offset - a.storage_offset;
  if (cannot_reach(terms, distance)) return false;
  if (!distance.is_constant() || !std::ranges::all_of(terms, is_number)) return true;
  std::ranges::sort(terms, std::greater<>{}, [](const SymbolicTerm& term) { return term.stride.constant(); });
  std::vector<Term> sorted;
  for (const SymbolicTerm& term : terms)
    sorted.push_back({term.stride.constant(), term.low.constant(), term.high.constant()});
  int steps = kMostSteps;
  return can_reach(sorted, distance.constant(), steps);
}

}  // namespace oxy::trace
