#include "ops/core/stride_order.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "ops/core/sizes_of_one.h"

namespace oxy::ops {
namespace {

bool is_zero(const Expr& e) {
  return e.is_constant() && e.constant() == 0;
}
bool is_one(const Expr& e) {
  return e.is_constant() && e.constant() == 1;
}

// Whether all operands order each two dimensions, and alike, where sizes are other than 0 and 1. Then this
// order is right for 0 and 1 as well: where strides are equal because a size is 1, the order of the two does
// not matter. Otherwise it may, since an opinion that is missing gives way to others.
bool are_ordered_alike(const SizeQuestions& questions, std::span<const std::vector<Expr>> strides) {
  const size_t rank = strides.empty() ? 0 : strides.front().size();
  for (size_t a = 0; a < rank; ++a)
    for (size_t b = a + 1; b < rank; ++b) {
      std::optional<bool> first;
      for (const std::vector<Expr>& operand : strides) {
        if (is_zero(operand[a]) || is_zero(operand[b])) return false;
        const std::optional<bool> is_less = questions.generally(sym::less(operand[a], operand[b]));
        const std::optional<bool> is_greater = questions.generally(sym::less(operand[b], operand[a]));
        if (!is_less || !is_greater || *is_less == *is_greater || (first && *first != *is_less)) return false;
        first = is_less;
      }
    }
  return true;
}

// How strides and sizes of operands compare.
class Order {
 public:
  // Unless it `asks`, answers that are not certain are those of the values at hand, without a guard.
  Order(const ShapeContext& context, std::span<const std::vector<Expr>> strides, bool asks = true)
      : context_(context),
        asks_(asks),
        is_general_(context.questions() != nullptr && are_ordered_alike(*context.questions(), strides)) {}

  bool is_general() const { return is_general_; }

  // Whether an answer was one that sizes other than 0 and 1 do not give.
  bool is_special() const { return is_special_; }

  // Whether a > b, and nothing else: of two equal sizes, no question whether the other is larger is asked.
  bool is_greater(const Expr& a, const Expr& b) const {
    if (a.is_constant() && b.is_constant()) return a.constant() > b.constant();
    if (context_.questions() != nullptr) return !(a == b) && holds(sym::less(b, a));
    return compare(a, b) > 0;
  }

  // -1: a < b, 0: equal, 1: a > b.
  int compare(const Expr& a, const Expr& b) const {
    if (a.is_constant() && b.is_constant())
      return a.constant() < b.constant() ? -1 : static_cast<int>(a.constant() > b.constant());
    if (a == b) return 0;
    if (context_.questions() != nullptr)
      return holds(sym::less(a, b)) ? -1 : static_cast<int>(holds(sym::less(b, a)));
    TensorMeta copy;
    const TensorMeta large = with_large_sizes({.sizes = {a, b}, .strides = {}}, copy);
    if (large.sizes[0] == large.sizes[1]) return 0;
    if (is_known_less(large.sizes[0], large.sizes[1])) return -1;
    if (is_known_less(large.sizes[1], large.sizes[0])) return 1;
    // Alike only where a size between the two is 1, whose stride is of no account.
    if (is_known_less_equal(large.sizes[0], large.sizes[1])) return -1;
    if (is_known_less_equal(large.sizes[1], large.sizes[0])) return 1;
    not_covered(context_, "strides whose order is not known");
  }

 private:
  // Products of sizes, too: n against n * m with m > 1.
  static bool is_known_less(const Expr& a, const Expr& b) {
    return sym::known_less(a, b) || (sym::known_divisible(b, a) && sym::known_less(1, sym::floordiv(b, a)));
  }
  static bool is_known_less_equal(const Expr& a, const Expr& b) {
    return sym::known_less_equal(a, b) ||
           (sym::known_divisible(b, a) && sym::known_less_equal(1, sym::floordiv(b, a)));
  }

  bool holds(const sym::Condition& question) const {
    const SizeQuestions& questions = *context_.questions();
    const std::optional<bool> general = questions.generally(question);
    if (!asks_) return general ? *general : questions.at_hand(question).value_or(false);
    const bool is_right =
        general && (is_general_ || questions.at_hand(question).value_or(*general) == *general);
    if (is_right) return *general;
    is_special_ = true;
    return questions.decide_layout(question);
  }

  const ShapeContext& context_;
  bool asks_;
  bool is_general_;
  mutable bool is_special_ = false;
};

// Whether some two dimensions of more than one index have no order that all operands agree on. Then it is up
// to other dimensions how the two lie.
bool leaves_order_to_others(const SizeQuestions& questions, const std::vector<Expr>& sizes,
                            std::span<const std::vector<Expr>> strides) {
  for (size_t a = 0; a < sizes.size(); ++a)
    for (size_t b = a + 1; b < sizes.size(); ++b) {
      if (is_one(sizes[a]) || is_one(sizes[b])) continue;
      std::optional<bool> first;
      for (const std::vector<Expr>& operand : strides) {
        if (is_zero(operand[a]) || is_zero(operand[b]) || operand[a] == operand[b]) continue;
        const std::optional<bool> is_less = questions.generally(sym::less(operand[a], operand[b]));
        if (!is_less || (first && *first != *is_less)) return true;
        first = is_less;
      }
      if (!first) return true;
    }
  return false;
}

// The dimensions swap places if dim0 is to lie outside of dim1: 1 yes, -1 no, 0 no operand says so.
int should_swap(const Order& order, const std::vector<Expr>& sizes,
                std::span<const std::vector<Expr>> strides, size_t dim0, size_t dim1) {
  for (const std::vector<Expr>& operand : strides) {
    const Expr& stride0 = operand[dim0];
    const Expr& stride1 = operand[dim1];
    if (is_zero(stride0) || is_zero(stride1)) continue;
    if (int result = order.compare(stride0, stride1); result != 0) return result;
    if (order.is_greater(sizes[dim0], sizes[dim1])) return 1;
  }
  return 0;
}

// `order`: dimensions, the last one first. An insertion sort that looks past ambiguous neighbours: the
// relation is no total order, so that the result depends on the order of the comparisons.
std::vector<size_t> sorted(const Order& comparing, const std::vector<Expr>& sizes,
                           std::span<const std::vector<Expr>> strides, std::vector<size_t> order) {
  for (size_t i = 1; i < order.size(); ++i) {
    size_t at = i;
    for (size_t before = i; before-- > 0;) {
      const int swap = should_swap(comparing, sizes, strides, order[before], order[at]);
      if (swap < 0) break;
      if (swap > 0) {
        std::swap(order[before], order[at]);
        at = before;
      }
    }
  }
  return order;
}

// What operands say of the order: their strides, 0 where they are broadcast, and `own`, the same of operands
// that are not broadcast. Of a size of 1 beside one index of the result these are heard.
struct Strides {
  std::span<const std::vector<Expr>> broadcast, own;
};

// Whether the dimensions outside of `ones`, sizes that are 1, are in another order than ours if eager's
// strides of a dimension with one index are others than ours.
class OrderBesideOnes {
 public:
  // `quiet` compares the operands' own strides, and asks nothing.
  OrderBesideOnes(const Order& comparing, const Order& quiet, const std::vector<Expr>& sizes,
                  const Strides& strides, const std::vector<size_t>& order, const std::vector<Expr>& ones)
      : comparing_(comparing),
        quiet_(quiet),
        sizes_(sizes),
        strides_(strides),
        ones_(ones),
        expected_(left_of(order)),
        is_of_interest_(expected_.size() >= 2 && expected_.size() < order.size()),
        count_(std::min(strides.broadcast.size(), kMostOperands)) {
    for (size_t d = sizes.size(); d-- > 0;) start_.push_back(d);
    for (size_t d = 0; d < sizes.size(); ++d) with_ones_.push_back(is_left(d) ? sizes[d] : Expr(1));
  }

  bool may_differ() const {
    return is_of_interest_ &&
           (differs_if_some_are_silent() || differs_if_own_are_heard() || differs_at_an_end());
  }

 private:
  static constexpr size_t kMostOperands = 3;
  // The operands that have no opinion on `ones`, a bit for each; the last bit stands for all others.
  using Silent = uint32_t;

  bool is_left(size_t d) const { return std::ranges::find(ones_, sizes_[d]) == ones_.end(); }

  std::vector<size_t> left_of(const std::vector<size_t>& dims) const {
    std::vector<size_t> left;
    std::ranges::copy_if(dims, std::back_inserter(left), [this](size_t d) { return is_left(d); });
    return left;
  }

  // `spoken`: the operands' strides of `ones`.
  bool differs(const Order& comparing, const std::vector<Expr>& sizes,
               std::span<const std::vector<Expr>> spoken, Silent silent) const {
    std::vector<std::vector<Expr>> heard(strides_.broadcast.begin(), strides_.broadcast.end());
    for (size_t k = 0; k < heard.size(); ++k)
      for (size_t d = 0; d < sizes.size(); ++d)
        if (!is_left(d)) heard[k][d] = (silent >> std::min(k, count_ - 1) & 1U) != 0 ? Expr(0) : spoken[k][d];
    return left_of(sorted(comparing, sizes, heard, start_)) != expected_;
  }

  // Whether the operand is contiguous. Then its strides of ones are eager's too, unless it is an input that
  // has others.
  bool is_contiguous(size_t operand) const {
    Expr expected = 1;
    for (size_t d = sizes_.size(); d-- > 0;) {
      if (is_zero(strides_.broadcast[operand][d])) continue;
      if (!(strides_.broadcast[operand][d] == expected)) return false;
      expected = expected * sym::max(sizes_[d], 1);
    }
    return true;
  }

  bool differs_if_some_are_silent() const {
    for (Silent silent = 1; silent < (1U << count_); ++silent)
      if (differs(comparing_, sizes_, strides_.broadcast, silent)) return true;
    return false;
  }

  bool differs_if_own_are_heard() const {
    bool has_own = false;
    for (size_t d = 0; d < sizes_.size(); ++d)
      for (size_t k = 0; k < strides_.own.size(); ++k)
        has_own = has_own || (!is_left(d) && !(strides_.own[k][d] == strides_.broadcast[k][d]));
    for (Silent silent = 0; has_own && silent + 1 < (1U << count_); ++silent)
      if (differs(quiet_, with_ones_, strides_.own, silent)) return true;
    return false;
  }

  // Of sizes that are 1, an operand may say that they are the innermost or the outermost ones.
  bool differs_at_an_end() const {
    Expr outermost = 1;
    for (const std::vector<Expr>& own : strides_.own)
      for (const Expr& stride : own) outermost = outermost + stride;
    for (size_t k = 0; k < strides_.own.size(); ++k) {
      if (ones_.size() > 1 && is_contiguous(k)) continue;
      for (const Expr& stride : {Expr(1), outermost}) {
        std::vector<std::vector<Expr>> spoken(strides_.own.begin(), strides_.own.end());
        for (size_t d = 0; d < sizes_.size(); ++d)
          if (!is_left(d) && !is_zero(spoken[k][d])) spoken[k][d] = stride;
        if (differs(quiet_, with_ones_, spoken, 0)) return true;
      }
    }
    return false;
  }

  const Order& comparing_;
  const Order& quiet_;
  const std::vector<Expr>& sizes_;
  const Strides& strides_;
  const std::vector<Expr>& ones_;
  std::vector<size_t> expected_;
  bool is_of_interest_;
  size_t count_;
  std::vector<size_t> start_;
  std::vector<Expr> with_ones_;  // the sizes, 1 in the place of `ones`
};

// Decides which sizes are 1, as far as the order of the other dimensions may be another one then.
void decide_ones_beside(const ShapeContext& context, const Order& comparing, const std::vector<Expr>& sizes,
                        const Strides& strides, const std::vector<size_t>& order) {
  const SizeQuestions& questions = *context.questions();
  if (sizes.size() < 3 || !leaves_order_to_others(questions, sizes, strides.broadcast)) return;
  std::vector<Expr> may_be_one;
  for (const Expr& size : sizes)
    if (!size.is_constant() && std::ranges::find(may_be_one, size) == may_be_one.end())
      may_be_one.push_back(size);
  const Order quiet(context, strides.own, false);
  for_each_set_of_ones(std::move(may_be_one), {Expr(1)}, [&](const std::vector<Expr>& ones) {
    if (OrderBesideOnes(comparing, quiet, sizes, strides, order, ones).may_differ())
      ops::decide_ones(questions, ones);
  });
}

// The sizes that are 1 at this call are such for all: strides of these dimensions have had a say.
void decide_ones_of_this_call(const SizeQuestions& questions, const std::vector<Expr>& sizes) {
  std::vector<Expr> ones;
  std::ranges::copy_if(sizes, std::back_inserter(ones), [&](const Expr& size) {
    return !size.is_constant() && questions.at_hand(sym::equal(size, 1)) == true;
  });
  if (!ones.empty()) ops::decide_ones(questions, ones);
}

}  // namespace

std::vector<size_t> stride_order(const ShapeContext& context, const std::vector<Expr>& sizes,
                                 std::span<const std::vector<Expr>> strides,
                                 std::span<const std::vector<Expr>> own) {
  const Order comparing(context, strides);
  std::vector<size_t> order(sizes.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = order.size() - 1 - i;
  order = sorted(comparing, sizes, strides, std::move(order));
  if (comparing.is_special()) decide_ones_of_this_call(*context.questions(), sizes);
  if (context.questions() != nullptr && !comparing.is_general())
    decide_ones_beside(context, comparing, sizes, {strides, own.empty() ? strides : own}, order);
  return order;
}

}  // namespace oxy::ops
