#include "ops/core/memory_format.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <utility>

#include "ops/core/element_wise.h"

namespace oxy::ops {
namespace {

bool has_formats(const TensorMeta& meta) {
  return meta.rank() == 4 || meta.rank() == 5;
}

// Innermost first: the channels, the space, the batch.
std::vector<size_t> channels_last_order(size_t rank) {
  std::vector<size_t> order{1};
  for (size_t d = rank - 1; d >= 2; --d) order.push_back(d);
  order.push_back(0);
  return order;
}

bool is_zero(const Expr& e) {
  return e == Expr(0);
}

// True if the space lies within the channels and in its own order. Then nothing that the sizes may be makes
// the tensor a channels-last one: the strides would have to be alike, and all sizes but the batch 1.
bool has_channels_outside(const TensorMeta& large) {
  const auto rank = large.sizes.size();
  if (!sym::known_less_equal(large.strides[2] * large.sizes[2], large.strides[1])) return false;
  for (size_t d = 2; d + 1 < rank; ++d)
    if (!sym::known_less_equal(large.strides[d + 1], large.strides[d])) return false;
  return true;
}

// The dimension lies outside of what spans `least` elements.
bool is_in_order(const ShapeContext& context, const Expr& least, const Expr& stride, const Expr& large_least,
                 const Expr& large_stride) {
  return sym::known_less_equal(large_least, large_stride) || context.less_equal(least, stride);
}

// A tensor with one channel, or one pixel, is in the format that strides of dimensions of size 1 say. These
// are eager's only where the size was a number from the beginning: a guard may have made it one since.
void decide_ones(const ShapeContext& context, std::span<const Expr> sizes) {
  if (context.questions() == nullptr) return;
  std::vector<sym::Condition> are_one;
  for (const Expr& size : sizes) are_one.push_back(sym::equal(size, 1));
  const sym::Condition question = sym::Condition::all(std::move(are_one));
  const std::optional<bool> known = question.constant();
  if (known ? *known : context.questions()->decide_layout(question)) context.questions()->need_exact_ones();
}

// Whether the dimensions besides those of `ones` lie in the order of channels-last, as far as is known.
bool is_in_order_without(const SizeQuestions& questions, const TensorMeta& meta, const TensorMeta& large,
                         uint32_t ones) {
  Expr least = 0, large_least = 0;
  for (const size_t d : channels_last_order(meta.sizes.size())) {
    if ((ones >> d & 1U) != 0) continue;
    const bool is_known = sym::known_less_equal(large_least, large.strides[d]);
    if (!is_known && questions.at_hand(sym::less_equal(least, meta.strides[d])) != true) return false;
    least = meta.strides[d] * sym::max(meta.sizes[d], 1);
    large_least = large.strides[d] * large.sizes[d];
  }
  return true;
}

// decide_disordered_ones(), for a result whose dimension d has the size that `meta` has there if keeps[d].
// `large`: the same tensor if none of its sizes that are symbols is 0 or 1.
void decide_ones_of(const SizeQuestions& questions, const TensorMeta& meta, const TensorMeta& large,
                    const std::vector<bool>& keeps) {
  const auto rank = static_cast<uint32_t>(meta.rank());
  uint32_t others = 0, space = 0, kept = 0;
  for (uint32_t d = 0; d < rank; ++d) {
    others |= static_cast<uint32_t>(meta.sizes[d].is_constant() && meta.sizes[d] != Expr(1)) << d;
    space |= static_cast<uint32_t>(d >= 2) << d;
    kept |= static_cast<uint32_t>(keeps[d]) << d;
  }
  std::vector<uint32_t> sets;
  for (uint32_t ones = 1; ones < 1U << rank; ++ones)
    if ((ones & others) == 0) sets.push_back(ones);
  std::ranges::stable_sort(sets, {}, [](uint32_t ones) { return std::popcount(ones); });
  std::vector<uint32_t> asked;
  for (const uint32_t ones : sets) {
    // The formats of one channel, or of one pixel, are alike.
    const bool is_one_format = (ones & kept & 2U) != 0 || (ones & kept & space) == space;
    const bool is_known = std::ranges::any_of(asked, [&](uint32_t set) { return (ones & set) == set; });
    if (is_one_format || is_known || !is_in_order_without(questions, meta, large, ones)) continue;
    std::vector<sym::Condition> are_one;
    for (uint32_t d = 0; d < rank; ++d)
      if ((ones >> d & 1U) != 0) are_one.push_back(sym::equal(meta.sizes[d], 1));
    const sym::Condition question = sym::Condition::all(std::move(are_one));
    if (question.constant() ? *question.constant() : questions.decide_layout(question))
      questions.need_exact_ones();
    asked.push_back(ones);
  }
}

}  // namespace

void decide_disordered_ones(const SizeQuestions& questions, const TensorMeta& meta) {
  TensorMeta copy;
  const TensorMeta& large = with_large_sizes(meta, copy);
  if (!has_formats(meta) || std::ranges::any_of(meta.sizes, is_zero) || is_zero(meta.strides[1]) ||
      has_channels_outside(large))
    return;
  decide_ones_of(questions, meta, large, std::vector<bool>(meta.sizes.size()));
}

MemoryFormat suggested_format(const ShapeContext& context, const TensorMeta& meta,
                              const std::vector<bool>& keeps) {
  if (!has_formats(meta)) return MemoryFormat::Contiguous;
  TensorMeta copy;
  const TensorMeta& large = with_large_sizes(meta, copy);
  const std::vector<Expr>& sizes = meta.sizes;
  const std::vector<Expr>& strides = meta.strides;
  if (std::ranges::any_of(sizes, is_zero) || is_zero(strides[1]) || has_channels_outside(large))
    return MemoryFormat::Contiguous;
  // Each dimension must lie outside of the one before it.
  Expr least = 0;
  Expr large_least = 0;
  for (const size_t d : channels_last_order(sizes.size())) {
    if (!is_in_order(context, least, strides[d], large_least, large.strides[d])) {
      if (context.questions() != nullptr) decide_ones_of(*context.questions(), meta, large, keeps);
      return MemoryFormat::Contiguous;
    }
    if (d == 0) break;
    least = strides[d] * sym::max(sizes[d], 1);
    large_least = large.strides[d] * large.sizes[d];
  }
  // A tensor without elements is in no order of its own.
  for (size_t d = 0; d < sizes.size(); ++d)
    if (!keeps[d] && context.equal(sizes[d], 0)) return MemoryFormat::Contiguous;
  // A batch of single values: every order of strides fits, and plain wins.
  const bool keeps_space =
      std::all_of(keeps.begin() + 2, keeps.end(), [](bool keeps_it) { return keeps_it; });
  const bool is_certain = least.is_constant() && strides[1].is_constant();
  const bool matters = is_certain || !(keeps[1] || keeps_space);
  if (matters && context.equal(least, strides[1])) return MemoryFormat::Contiguous;
  if (!keeps[1]) decide_ones(context, {&sizes[1], 1});
  if (!keeps_space) decide_ones(context, std::span(sizes).subspan(2));
  return meta.rank() == 4 ? MemoryFormat::ChannelsLast : MemoryFormat::ChannelsLast3d;
}

TensorMeta in_suggested_format(const ShapeContext& context, const TensorMeta& operand,
                               std::vector<Expr> sizes) {
  std::vector<bool> keeps(operand.sizes.size());
  for (size_t d = 0; d < keeps.size(); ++d) keeps[d] = sizes.at(d) == operand.sizes[d];
  const MemoryFormat format = suggested_format(context, operand, keeps);
  return with_format(context, contiguous_meta(operand.dtype, operand.device, std::move(sizes)), operand.dtype,
                     format);
}

TensorMeta in_suggested_format(const ShapeContext& context, const TensorMeta& operand) {
  return in_suggested_format(context, operand, operand.sizes);
}

TensorMeta in_format_of_host(const ShapeContext& context, const TensorMeta& operand,
                             std::vector<Expr> sizes) {
  if (is_on_host(operand.device)) return in_suggested_format(context, operand, std::move(sizes));
  return contiguous_meta(operand.dtype, operand.device, std::move(sizes));
}

bool is_channels_last(const ShapeContext& context, const TensorMeta& meta) {
  if (!has_formats(meta)) return false;
  if (oxy::is_channels_last(meta)) return true;
  if (context.questions() == nullptr || is_contiguous(meta)) return false;
  Expr expected = 1;
  for (const size_t d : channels_last_order(meta.sizes.size())) {
    const Expr& size = meta.sizes[d];
    const bool fits = meta.strides[d] == expected ||
                      context.questions()->decide(
                          sym::Condition::any({sym::equal(size, 1), sym::equal(meta.strides[d], expected)}));
    if (!fits) return false;
    expected = expected * sym::max(size, 1);
  }
  return true;
}

}  // namespace oxy::ops
