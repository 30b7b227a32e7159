#include "loop/view.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "loop/variables.h"

namespace oxy::loop {

namespace {

bool is_one(const Expr& e) {
  return e == Expr(1);
}

// One run of source dimensions [i, i_end) that hold the same elements as the view dimensions [j, j_end).
void split_group(const std::vector<Expr>& from, size_t i, size_t i_end, const std::vector<Expr>& to, size_t j,
                 size_t j_end, const Index& index, Index& result) {
  Expr linear = 0;
  for (size_t k = j; k < j_end; ++k) linear = is_one(to[k]) ? linear : linear * to[k] + index[k];
  size_t first = i;
  while (first < i_end && is_one(from[first])) ++first;
  for (size_t k = i_end; k-- > i;) {
    if (is_one(from[k])) {
      result[k] = 0;
    } else if (k == first) {
      result[k] = linear;
    } else {
      result[k] = sym::mod(linear, from[k]);
      linear = sym::floordiv(linear, from[k]);
    }
  }
}

}  // namespace

Index view_index(const std::vector<Expr>& sizes) {
  Index index;
  index.reserve(sizes.size());
  for (size_t k = 0; k < sizes.size(); ++k)
    index.push_back(is_one(sizes[k]) ? Expr(0)
                                     : index_variable(kViewVariables, static_cast<int64_t>(k), sizes[k]));
  return index;
}

Expr at(const Expr& e, const Index& index) {
  return sym::substitute(e, [&](int64_t id) -> std::optional<Expr> {
    if (id < kViewVariables) return std::nullopt;
    return index.at(static_cast<size_t>(id - kViewVariables));
  });
}

Index at(const Index& map, const Index& index) {
  Index result;
  result.reserve(map.size());
  for (const Expr& e : map) result.push_back(at(e, index));
  return result;
}

Index reshape_index(const std::vector<Expr>& from, const std::vector<Expr>& to, const Index& index) {
  Index result(from.size(), Expr(0));
  auto is_zero = [](const Expr& e) { return e == Expr(0); };
  if (std::ranges::any_of(from, is_zero) || std::ranges::any_of(to, is_zero)) return result;
  size_t i = 0;
  size_t j = 0;
  while (i < from.size() && j < to.size()) {
    size_t i_end = i;
    size_t j_end = j;
    Expr source = from[i_end++];
    Expr view = to[j_end++];
    while (!(source == view)) {
      bool take_source =
          i_end < from.size() && (j_end == to.size() || sym::known_less(source, view) ||
                                  (!sym::known_less(view, source) && sym::known_divisible(view, source)));
      if (take_source)
        source = source * from[i_end++];
      else if (j_end < to.size())
        view = view * to[j_end++];
      else
        break;  // the sizes agree only by what is known of their symbols: one group to the end
    }
    if (!(source == view)) {
      i_end = from.size();
      j_end = to.size();
    }
    split_group(from, i, i_end, to, j, j_end, index, result);
    i = i_end;
    j = j_end;
  }
  return result;
}

void require_broadcast(const std::vector<Expr>& from, const std::vector<Expr>& to) {
  check(from.size() <= to.size(), "a tensor is broadcast to fewer dimensions");
  const size_t skipped = to.size() - from.size();
  for (size_t k = 0; k < from.size(); ++k)
    if (!is_one(from[k]) && !(from[k] == to[k + skipped]))
      throw Unsupported(fmt::format("a size {} that is to be {}", from[k].str(), to[k + skipped].str()));
}

Index broadcast_index(const std::vector<Expr>& from, const Index& index) {
  check(from.size() <= index.size(), "a tensor is broadcast to fewer dimensions");
  size_t skipped = index.size() - from.size();
  Index result;
  result.reserve(from.size());
  for (size_t k = 0; k < from.size(); ++k) result.push_back(is_one(from[k]) ? Expr(0) : index[k + skipped]);
  return result;
}

std::optional<Index> unravel(const Expr& linear, const std::vector<Expr>& sizes,
                             const std::vector<Expr>& strides) {
  TensorMeta copy;
  const TensorMeta large = with_large_sizes({.sizes = sizes, .strides = strides}, copy);
  std::vector<size_t> left;
  for (size_t k = 0; k < sizes.size(); ++k)
    if (!is_one(sizes[k])) left.push_back(k);
  Index index(sizes.size(), Expr(0));
  Expr expected = 1;
  while (!left.empty()) {  // innermost first
    const auto next = std::ranges::find_if(left, [&](size_t k) { return large.strides[k] == expected; });
    if (next == left.end()) return std::nullopt;
    const size_t k = *next;
    left.erase(next);
    const Expr position = sym::floordiv(linear, strides[k]);
    index[k] = left.empty() ? position : sym::mod(position, sizes[k]);
    expected = expected * large.sizes[k];
  }
  return index;
}

Expr ravel(const Index& index, const std::vector<Expr>& sizes) {
  Expr linear = 0;
  for (size_t k = 0; k < sizes.size(); ++k) linear = linear * sizes[k] + index[k];
  return linear;
}

std::optional<StridedView> strided(const Index& map, const std::vector<Expr>& sizes,
                                   const std::vector<Expr>& buffer_strides) {
  Expr flat = 0;
  for (size_t k = 0; k < map.size(); ++k) flat = flat + map[k] * buffer_strides[k];
  StridedView view;
  for (size_t k = 0; k < sizes.size(); ++k) {
    auto linear = sym::linear_in(flat, kViewVariables + static_cast<int64_t>(k));
    if (!linear) return std::nullopt;
    for (const Expr& v : sym::variables(linear->first))
      if (v.variable_id() >= kLoopVariables) return std::nullopt;
    view.strides.push_back(std::move(linear->first));
    flat = std::move(linear->second);
  }
  view.offset = flat;
  return view;
}

bool same_strides(const std::vector<Expr>& sizes, const std::vector<Expr>& a, const std::vector<Expr>& b) {
  if (std::ranges::any_of(sizes, [](const Expr& e) { return e == Expr(0); })) return true;
  TensorMeta copy_of_a;
  TensorMeta copy_of_b;
  const TensorMeta first{.sizes = sizes, .strides = a};
  const TensorMeta second{.sizes = sizes, .strides = b};
  const std::vector<Expr>& large_a = with_large_sizes(first, copy_of_a).strides;
  const std::vector<Expr>& large_b = with_large_sizes(second, copy_of_b).strides;
  for (size_t k = 0; k < sizes.size(); ++k)
    if (!is_one(sizes[k]) && !(large_a[k] == large_b[k])) return false;
  return true;
}

}  // namespace oxy::loop
