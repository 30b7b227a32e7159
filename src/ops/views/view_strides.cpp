#include "ops/views/view_strides.h"

#include <algorithm>

namespace oxy::ops {
namespace {

bool is_one(const Expr& e) {
  return e == Expr(1);
}
bool is_zero(const Expr& e) {
  return e == Expr(0);
}

// One attempt. From the innermost dimension outwards, a run of old dimensions that lie in one another without
// gaps must equal a run of new ones.
class Walk {
 public:
  // `may_ask`: dimensions may be taken to lie in one another because they do so at hand.
  Walk(const ShapeContext& context, const TensorMeta& meta, const std::vector<Expr>& sizes, bool may_ask)
      : context_(context),
        meta_(meta),
        large_(with_large_sizes(meta, copy_)),
        sizes_(sizes),
        next_(sizes.size()),
        may_ask_(may_ask) {}

  std::optional<std::vector<Expr>> strides() {
    std::optional<std::vector<Expr>> strides = walk();
    if (!strides) return std::nullopt;
    const bool is_possible = std::ranges::all_of(needed_, [&](const sym::Condition& condition) {
      return condition.constant().value_or(false) ||
             (!condition.constant() && context_.questions() != nullptr &&
              context_.questions()->at_hand(condition) != false);
    });
    if (!is_possible) return std::nullopt;
    for (const sym::Condition& condition : needed_)
      if (!condition.constant() && !context_.questions()->decide(condition)) return std::nullopt;
    return strides;
  }

  // Nothing where something would have to be asked.
  std::optional<std::vector<Expr>> certain_strides() {
    std::optional<std::vector<Expr>> strides = walk();
    const auto holds = [](const sym::Condition& condition) { return condition.constant() == true; };
    return std::ranges::all_of(needed_, holds) ? strides : std::nullopt;
  }

 private:
  // Right if `needed_` holds.
  std::optional<std::vector<Expr>> walk() {
    std::vector<Expr> strides(sizes_.size(), Expr(1));
    for (size_t end = meta_.sizes.size(); end > 0;) {
      const Expr base = meta_.strides[end - 1];
      const Expr elements = take_old_run(end);
      const std::optional<size_t> first = take_new_run(elements, end == 0);
      if (!first) return std::nullopt;
      Expr covered = 1;
      for (size_t d = next_; d-- > *first;) {
        strides[d] = covered * base;
        covered = covered * sizes_[d];
      }
      // The last runs are as long because all others are.
      if (end > 0 || !may_differ(covered, elements)) need(sym::equal(covered, elements));
      next_ = *first;
    }
    return strides;
  }

  // The elements of the dimensions that lie in number `end` - 1 or around it; `end` is where they begin.
  Expr take_old_run(size_t& end) {
    const Expr& base = meta_.strides[end - 1];
    const Expr& large_base = large_.strides[end - 1];
    Expr elements = meta_.sizes[--end];
    Expr some_elements = sym::max(elements, 1);
    Expr large_elements = large_.sizes[end];
    while (end > 0) {
      const bool lies_around =
          is_one(meta_.sizes[end - 1]) || large_.strides[end - 1] == large_elements * large_base;
      if (!lies_around && !lies_around_at_hand(end - 1, some_elements * base)) break;
      --end;
      elements = elements * meta_.sizes[end];
      some_elements = some_elements * sym::max(meta_.sizes[end], 1);
      large_elements = large_elements * large_.sizes[end];
    }
    return elements;
  }

  bool lies_around_at_hand(size_t d, const Expr& stride) {
    if (!may_ask_) return false;
    const sym::Condition condition =
        sym::Condition::any({sym::equal(meta_.sizes[d], 1), sym::equal(meta_.strides[d], stride)});
    if (context_.questions()->at_hand(condition) != true) return false;
    need(condition);
    return true;
  }

  // Where the run of new dimensions with as many elements begins; nothing if there is none.
  std::optional<size_t> take_new_run(const Expr& elements, bool is_last) const {
    std::optional<size_t> first = equal_run(elements);
    if (is_last) return 0;
    if (!first) first = run_at_hand(elements);
    while (first && *first > 0 && is_one(sizes_[*first - 1])) --*first;
    return first;
  }

  std::optional<size_t> equal_run(const Expr& elements) const {
    Expr covered = 1;
    for (size_t first = next_;; --first) {
      if (covered == elements) return first;
      if (first == 0) return std::nullopt;
      covered = covered * sizes_[first - 1];
    }
  }

  std::optional<size_t> run_at_hand(const Expr& elements) const {
    const SizeQuestions* const questions = context_.questions();
    if (questions == nullptr) return std::nullopt;
    Expr covered = 1;
    size_t first = next_;
    while (first > 0 && (questions->at_hand(sym::less(covered, elements)) != false ||
                         questions->at_hand(sym::equal(sizes_[first - 1], 1)) == true))
      covered = covered * sizes_[--first];
    return first;
  }

  // Of a last run: numbers say themselves whether it is as long.
  static bool may_differ(const Expr& covered, const Expr& elements) {
    return !covered.is_constant() || !elements.is_constant();
  }

  void need(sym::Condition condition) { needed_.push_back(std::move(condition)); }

  const ShapeContext& context_;
  const TensorMeta& meta_;
  TensorMeta copy_;
  const TensorMeta& large_;
  const std::vector<Expr>& sizes_;
  size_t next_;  // the new dimensions from here on have their strides
  bool may_ask_;
  std::vector<sym::Condition> needed_;
};

bool has_symbols(const std::vector<Expr>& list) {
  return std::ranges::any_of(list, [](const Expr& e) { return !e.is_constant(); });
}

// Whether some dimensions of size 1 have other strides than in memory without gaps, and no others have. Views
// keep such strides.
bool lies_otherwise_in_ones_alone(const TensorMeta& meta) {
  const std::vector<Expr> without_gaps = contiguous_strides(meta.sizes);
  bool is_any = false;
  for (size_t d = 0; d < meta.sizes.size(); ++d) {
    if (meta.strides[d] == without_gaps[d]) continue;
    if (!is_one(meta.sizes[d])) return false;
    is_any = true;
  }
  return is_any;
}

// Eager may give a dimension of size 1 a stride that one of more elements would not have, as that of the
// channels to a batch of one image. Then the tensor is no longer in the format of its channels.
void decide_ones_of_images(const ShapeContext& context, const TensorMeta& meta, const TensorMeta& out) {
  const bool has_inner_channels = (out.rank() == 4 || out.rank() == 5) && is_one(out.strides[1]);
  if (context.questions() == nullptr || !has_inner_channels || is_contiguous(out)) return;
  const Expr& batch = out.sizes[0];
  if (batch.is_constant()) return;
  TensorMeta one = meta;
  std::vector<Expr> sizes = out.sizes;
  for (std::vector<Expr>* list : {&one.sizes, &sizes}) std::ranges::replace(*list, Expr(batch), Expr(1));
  const std::optional<std::vector<Expr>> strides = view_strides(context, one, sizes);
  if (strides && strides->front() == out.strides[0]) return;
  if (context.questions()->decide_layout(sym::equal(batch, 1))) context.questions()->need_exact_ones();
}

}  // namespace

std::optional<std::vector<Expr>> view_strides(const ShapeContext& context, const TensorMeta& meta,
                                              const std::vector<Expr>& sizes) {
  if (std::ranges::any_of(meta.sizes, is_zero))
    return sizes == meta.sizes ? meta.strides : contiguous_strides(sizes);
  if (meta.sizes.empty()) return std::vector<Expr>(sizes.size(), Expr(1));
  const bool is_symbolic = has_symbols(meta.sizes) || has_symbols(meta.strides) || has_symbols(sizes);
  if (is_symbolic && is_contiguous(meta)) {
    std::optional<std::vector<Expr>> strides;
    if (lies_otherwise_in_ones_alone(meta)) strides = Walk(context, meta, sizes, false).certain_strides();
    return strides ? strides : contiguous_strides(sizes);
  }
  const bool may_ask = is_symbolic && context.questions() != nullptr;
  if (may_ask) {
    const sym::Condition is_empty = sym::equal(element_count(meta), 0);
    if (context.questions()->at_hand(is_empty) == true && context.questions()->decide(is_empty))
      return contiguous_strides(sizes);
  }
  std::optional<std::vector<Expr>> strides = Walk(context, meta, sizes, false).strides();
  if (!strides && may_ask) strides = Walk(context, meta, sizes, true).strides();
  return strides;
}

std::optional<TensorMeta> viewed(const ShapeContext& context, const TensorMeta& meta,
                                 std::vector<Expr> sizes) {
  std::optional<std::vector<Expr>> strides = view_strides(context, meta, sizes);
  if (!strides) return std::nullopt;
  TensorMeta out = meta;
  out.sizes = std::move(sizes);
  out.strides = std::move(*strides);
  decide_ones_of_images(context, meta, out);
  return out;
}

}  // namespace oxy::ops
