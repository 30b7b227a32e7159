#include "aten/tensor_meta.h"

#include <fmt/format.h>

#include <algorithm>

#include "aten/device_kinds.h"
#include "base/error.h"
#include "sym/facts/always_holds.h"

namespace oxy {
namespace {

// Offsets of elements in the storage. The last lies before the first where there are none.
struct Places {
  Expr first;
  Expr last;
};

Places places_of(const TensorMeta& meta) {
  Places places{meta.storage_offset, meta.storage_offset};
  for (size_t d = 0; d < meta.sizes.size(); ++d)
    places.last = places.last + (meta.sizes[d] - 1) * meta.strides[d];
  return places;
}

bool is_zero(const Expr& e) {
  return e.is_constant() && e.constant() == 0;
}
bool is_one(const Expr& e) {
  return e.is_constant() && e.constant() == 1;
}
// Size 0 or 1: the stride of the dimension says nothing.
bool is_trivial(const Expr& size) {
  return size.is_constant() && size.constant() < 2;
}

bool has_no_elements(const TensorMeta& meta) {
  return std::any_of(meta.sizes.begin(), meta.sizes.end(), is_zero);
}

bool has_symbols(const TensorMeta& meta) {
  const auto is_symbol = [](const Expr& e) { return !e.is_constant(); };
  return std::ranges::any_of(meta.sizes, is_symbol) || std::ranges::any_of(meta.strides, is_symbol);
}

TensorMeta large(const TensorMeta& meta) {
  const auto replaced = [](const Expr& e) {
    if (e.is_constant()) return e;
    const std::vector<Expr> variables = sym::variables(e);
    return sym::substitute(e, [&](int64_t id) -> std::optional<Expr> {
      const auto found = std::ranges::find(variables, id, &Expr::variable_id);
      const sym::Range range = found->range();
      if (range.high < 2) return Expr(range.high);
      return Expr::variable(found->variable_name(), id, {std::max<int64_t>(range.low, 2), range.high});
    });
  };
  TensorMeta result = meta;
  for (Expr& size : result.sizes) size = replaced(size);
  for (Expr& stride : result.strides) stride = replaced(stride);
  return result;
}

// The strides that dimensions without gaps have, one after the other from the innermost outwards.
class PackedStrides {
 public:
  // Where there may be no elements, a stride may also be that of a tensor whose sizes of 0 are 1: it is of no
  // account then, and otherwise the same.
  bool are_next(const Expr& stride) const {
    if (stride == next_) return true;
    if (stride.is_constant() && next_.is_constant()) return false;
    Expr other = 1;
    for (const Expr* size : inner_) other = other * sym::max(*size, 1);
    return stride == other;
  }
  void add(const Expr& size) {
    next_ = next_ * size;
    inner_.push_back(&size);
  }

 private:
  Expr next_ = 1;
  std::vector<const Expr*> inner_;
};

// True if the dimensions `order`, innermost first, are laid out one after the other without gaps.
bool is_packed(const TensorMeta& meta, const std::vector<size_t>& order) {
  PackedStrides strides;
  for (size_t d : order) {
    if (is_one(meta.sizes[d])) continue;
    if (!strides.are_next(meta.strides[d])) return false;
    strides.add(meta.sizes[d]);
  }
  return true;
}

std::vector<size_t> channels_last_order(size_t rank) {
  std::vector<size_t> order = {1};
  for (size_t d = rank - 1; d >= 2; --d) order.push_back(d);
  order.push_back(0);
  return order;
}

std::string join(const std::vector<Expr>& items) {
  std::string text;
  for (const Expr& e : items) text += (text.empty() ? "" : ", ") + e.str();
  return text;
}

}  // namespace

std::string str(Device device) {
  for (const auto& [kind, word] : kDeviceKinds)
    if (kind == device.kind)
      return device.index < 0 ? std::string(word)
                              : fmt::format("{}:{}", word, static_cast<int>(device.index));
  throw InternalError("a kind of device without a name");
}

const TensorMeta& with_large_sizes(const TensorMeta& meta, TensorMeta& copy) {
  if (!has_symbols(meta)) return meta;
  copy = large(meta);
  return copy;
}

Expr element_count(const TensorMeta& meta) {
  return sym::product(meta.sizes);
}

std::vector<Expr> contiguous_strides(const std::vector<Expr>& sizes) {
  std::vector<Expr> strides(sizes.size());
  Expr stride = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    strides[i] = stride;
    stride = stride * sym::max(sizes[i], 1);
  }
  return strides;
}

std::vector<Expr> channels_last_strides(const std::vector<Expr>& sizes) {
  check(sizes.size() == 4 || sizes.size() == 5, "channels-last strides need rank 4 or 5");
  std::vector<Expr> strides(sizes.size());
  Expr stride = 1;
  for (size_t d : channels_last_order(sizes.size())) {
    strides[d] = stride;
    stride = stride * sizes[d];  // a size of 0 makes the outer strides 0, unlike contiguous strides
  }
  return strides;
}

bool is_contiguous(const TensorMeta& given) {
  TensorMeta copy;
  const TensorMeta& meta = with_large_sizes(given, copy);
  if (has_no_elements(meta)) return true;
  PackedStrides strides;
  for (size_t d = meta.sizes.size(); d-- > 0;) {
    if (is_one(meta.sizes[d])) continue;
    if (!strides.are_next(meta.strides[d])) return false;
    strides.add(meta.sizes[d]);
  }
  return true;
}

bool is_channels_last(const TensorMeta& given) {
  if (given.rank() != 4 && given.rank() != 5) return false;
  TensorMeta copy;
  const TensorMeta& meta = with_large_sizes(given, copy);
  return is_packed(meta, channels_last_order(meta.sizes.size()));
}

bool is_non_overlapping_and_dense(const TensorMeta& meta) {
  return is_contiguous(meta) || dense_order(meta).has_value();
}

std::optional<std::vector<size_t>> dense_order(const TensorMeta& given) {
  TensorMeta copy;
  const TensorMeta& meta = with_large_sizes(given, copy);
  std::vector<size_t> order, left;
  for (size_t d = meta.sizes.size(); d-- > 0;)
    if (!is_trivial(meta.sizes[d])) left.push_back(d);
  // Strides that are symbols have no certain order, so each is looked for by its value.
  PackedStrides strides;
  while (!left.empty()) {
    const auto next = std::ranges::find_if(left, [&](size_t d) { return strides.are_next(meta.strides[d]); });
    if (next == left.end()) return std::nullopt;
    strides.add(meta.sizes[*next]);
    order.push_back(*next);
    left.erase(next);
  }
  return order;
}

bool lies_between(const TensorMeta& view, const TensorMeta& whole) {
  const auto is_at_most = [](const Expr& a, const Expr& b) {
    return sym::known_less_equal(a, b) || sym::always_holds(sym::less_equal(a, b));
  };
  const auto is_number = [](const Expr& e) { return e.is_constant(); };
  if (!std::ranges::all_of(whole.sizes, is_number) && !is_non_overlapping_and_dense(whole)) return false;
  // Without elements, the tensor has no last place that its sizes and strides tell. A view of at most the
  // same size has none either then.
  const auto is_filled_for_view = [&](const Expr& size) {
    return sym::known_less_equal(1, size) ||
           std::ranges::any_of(view.sizes, [&](const Expr& own) { return is_at_most(own, size); });
  };
  if (!std::ranges::all_of(whole.sizes, is_filled_for_view)) return false;
  const Places own = places_of(view), all = places_of(whole);
  return is_at_most(all.first, own.first) && is_at_most(own.last, all.last);
}

std::string str(const TensorMeta& meta) {
  std::string text = fmt::format("{}[{}]", name(meta.dtype), join(meta.sizes));
  if (!is_contiguous(meta)) text += fmt::format(" strides [{}]", join(meta.strides));
  if (!is_zero(meta.storage_offset)) text += fmt::format(" offset {}", meta.storage_offset.str());
  if (!(meta.device == Device{})) text += " on " + str(meta.device);
  return text;
}

}  // namespace oxy
