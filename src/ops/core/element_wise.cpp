#include "ops/core/element_wise.h"

#include <algorithm>
#include <iterator>

#include "base/error.h"
#include "ops/core/shape_arguments.h"

namespace oxy::ops {
namespace {

// An operand of another type than the common one is converted before the loop, which gives it another layout
// if it has gaps (TensorIterator does so on the CPU).
bool converts_operands_first(Device device) {
  return device.kind == Device::Kind::Cpu;
}

bool is_zero(const Expr& e) {
  return e.is_constant() && e.constant() == 0;
}
bool is_one(const Expr& e) {
  return e.is_constant() && e.constant() == 1;
}

std::optional<DType> merge(std::optional<DType> a, DType b) {
  return a ? promote(*a, b) : b;
}

bool decides(DType higher, DType lower) {
  if (is_complex(higher)) return true;
  if (is_floating(higher)) return !is_complex(lower);
  if (is_floating(lower) || is_complex(lower)) return false;
  return higher != DType::Bool;
}

std::optional<DType> combine(std::optional<DType> higher, std::optional<DType> lower) {
  if (!higher || !lower) return higher ? higher : lower;
  if (decides(*higher, *lower)) return higher;
  if (is_floating(*higher)) {  // over complex: keeps its precision
    if (*higher == DType::Float16) throw Unsupported("complex numbers of half precision");
    return *higher == DType::Float64 ? DType::Complex128 : DType::Complex64;
  }
  return promote(*higher, *lower);
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
    return is_right ? *general : questions.decide_layout(question);
  }

  const ShapeContext& context_;
  bool asks_;
  bool is_general_;
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
    if (!(sizes[dim0] == sizes[dim1]) && order.compare(sizes[dim0], sizes[dim1]) > 0) return 1;
  }
  return 0;
}

std::vector<Expr> broadcast_strides(const ShapeContext& context, const TensorMeta& operand,
                                    const std::vector<Expr>& sizes) {
  std::vector<Expr> strides(sizes.size(), Expr(0));
  const size_t offset = sizes.size() - operand.sizes.size();
  for (size_t d = 0; d < operand.sizes.size(); ++d)
    if (!is_repeated(context, operand.sizes[d], sizes[offset + d])) strides[offset + d] = operand.strides[d];
  return strides;
}

// Where PyTorch takes a short cut: all operands of one shape and one simple layout.
bool simple_layout(std::span<const TensorMeta* const> operands, TensorMeta& out) {
  const TensorMeta& first = *operands.front();
  const auto all = [&](auto predicate) { return std::all_of(operands.begin(), operands.end(), predicate); };
  if (!all([&](const TensorMeta* m) { return m == &first || m->sizes == first.sizes; })) return false;
  if (all([](const TensorMeta* m) { return is_contiguous(*m); })) {
    out.strides = contiguous_strides(first.sizes);
    return true;
  }
  if (first.rank() == 4 && all([](const TensorMeta* m) { return is_channels_last(*m); })) {
    out.strides = channels_last_strides(first.sizes);
    return true;
  }
  if (all([&](const TensorMeta* m) {
        return (m == &first || m->strides == first.strides) && is_non_overlapping_and_dense(*m);
      })) {
    out.strides = first.strides;
    return true;
  }
  return false;
}

const TensorMeta& number_meta(const graph::Argument& number, DType default_dtype) {
  static const std::vector<TensorMeta> table = [] {
    std::vector<TensorMeta> metas;
    for (int i = 0; i <= static_cast<int>(DType::Complex128); ++i)
      metas.push_back({static_cast<DType>(i), {}, {}, {}, 0});
    return metas;
  }();
  DType dtype = DType::Int64;
  if (std::holds_alternative<bool>(number)) dtype = DType::Bool;
  if (std::holds_alternative<double>(number)) dtype = default_dtype;
  if (std::holds_alternative<std::complex<double>>(number))
    dtype = default_dtype == DType::Float64 ? DType::Complex128 : DType::Complex64;
  return table[static_cast<size_t>(dtype)];
}

constexpr size_t kMaxOperands = 8;

struct Operands {
  const TensorMeta* metas[kMaxOperands];
  size_t count = 0;
  void add(const TensorMeta* meta) {
    check(count < kMaxOperands, "too many operands");
    metas[count++] = meta;
  }
  std::span<const TensorMeta* const> span() const { return {metas, count}; }
};

DType final_type(DType common, ResultType type) {
  return type == ResultType::Bool ? DType::Bool : common;
}

DType common_type(const ShapeContext& context, const Promotion& promotion, ResultType type) {
  DType common = promotion.result();
  if (type == ResultType::PromotedToFloat && !is_floating(common) && !is_complex(common))
    common = context.default_dtype();
  return common;
}

}  // namespace

void Promotion::add_tensor(const TensorMeta& meta) {
  std::optional<DType>& rank = ranks_[meta.sizes.empty() ? 1 : 0];
  rank = merge(rank, meta.dtype);
}

void Promotion::add_number(const graph::Argument& number) {
  ranks_[2] = merge(ranks_[2], number_meta(number, default_dtype_).dtype);
}

DType Promotion::result() const {
  std::optional<DType> type = combine(ranks_[0], combine(ranks_[1], ranks_[2]));
  check(type.has_value(), "no operands to promote");
  return *type;
}

std::vector<Expr> broadcast(const ShapeContext& context, std::span<const TensorMeta* const> operands) {
  size_t rank = 0;
  for (const TensorMeta* m : operands) rank = std::max(rank, m->sizes.size());
  std::vector<Expr> sizes(rank, Expr(1));
  for (const TensorMeta* m : operands) {
    const size_t offset = rank - m->sizes.size();
    for (size_t d = 0; d < m->sizes.size(); ++d) {
      const Expr& size = m->sizes[d];
      Expr& out = sizes[offset + d];
      if (is_repeated(context, out, size)) {
        out = size;
      } else if (!is_repeated(context, size, out) && !context.equal(out, size)) {
        not_covered(context, "sizes that do not broadcast");
      }
    }
  }
  return sizes;
}

namespace {

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

// Whether the dimensions outside of `ones` are in another order if some of the operands have no opinion on
// those, or one of their own: eager's strides of a dimension with one index may be others than ours. Of a
// size that is 1 for all calls, an operand may also say that it is the innermost or the outermost one.
bool depends_on_ones(const ShapeContext& context, const Order& comparing, const std::vector<Expr>& sizes,
                     const Strides& strides, const std::vector<size_t>& order,
                     const std::vector<Expr>& ones) {
  const auto is_left = [&](size_t d) { return std::ranges::find(ones, sizes[d]) == ones.end(); };
  const auto left_of = [&](const std::vector<size_t>& dims) {
    std::vector<size_t> left;
    std::ranges::copy_if(dims, std::back_inserter(left), is_left);
    return left;
  };
  const std::vector<size_t> expected = left_of(order);
  if (expected.size() < 2 || expected.size() == order.size()) return false;
  std::vector<size_t> start(sizes.size());
  for (size_t i = 0; i < start.size(); ++i) start[i] = start.size() - 1 - i;
  constexpr size_t kMostOperands = 3;
  const size_t count = std::min(strides.broadcast.size(), kMostOperands);
  const auto differs = [&](const Order& order_of, const std::vector<Expr>& sizes_of,
                           std::span<const std::vector<Expr>> spoken, uint32_t silent) {
    std::vector<std::vector<Expr>> heard(strides.broadcast.begin(), strides.broadcast.end());
    for (size_t k = 0; k < heard.size(); ++k)
      for (size_t d = 0; d < sizes.size(); ++d)
        if (!is_left(d)) heard[k][d] = (silent >> std::min(k, count - 1) & 1U) != 0 ? Expr(0) : spoken[k][d];
    return left_of(sorted(order_of, sizes_of, heard, start)) != expected;
  };
  for (uint32_t silent = 1; silent < (1U << count); ++silent)
    if (differs(comparing, sizes, strides.broadcast, silent)) return true;
  const Order quiet(context, strides.own, false);
  std::vector<Expr> with_ones = sizes;
  bool has_own = false;
  Expr outermost = 1;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (!is_left(d)) with_ones[d] = 1;
    for (size_t k = 0; k < strides.own.size(); ++k) {
      has_own = has_own || (!is_left(d) && !(strides.own[k][d] == strides.broadcast[k][d]));
      outermost = outermost + strides.own[k][d];
    }
  }
  for (uint32_t silent = 0; has_own && silent + 1 < (1U << count); ++silent)
    if (differs(quiet, with_ones, strides.own, silent)) return true;
  const bool are_constant = ones.size() == 1;
  for (size_t k = 0; are_constant && k < strides.own.size(); ++k)
    for (const Expr& stride : {Expr(1), outermost}) {
      std::vector<std::vector<Expr>> spoken(strides.own.begin(), strides.own.end());
      for (size_t d = 0; d < sizes.size(); ++d)
        if (!is_left(d) && !is_zero(spoken[k][d])) spoken[k][d] = stride;
      if (differs(quiet, with_ones, spoken, 0)) return true;
    }
  return false;
}

// Decides which sizes are 1, as far as the order of the other dimensions may be another one then.
void decide_ones(const ShapeContext& context, const Order& comparing, const std::vector<Expr>& sizes,
                 const Strides& strides, const std::vector<size_t>& order) {
  const SizeQuestions& questions = *context.questions();
  if (sizes.size() < 3 || !leaves_order_to_others(questions, sizes, strides.broadcast)) return;
  std::vector<Expr> may_be_one;
  for (const Expr& size : sizes)
    if (!size.is_constant() && std::ranges::find(may_be_one, size) == may_be_one.end())
      may_be_one.push_back(size);
  constexpr size_t kMostSizes = 6;
  may_be_one.resize(std::min(may_be_one.size(), kMostSizes));
  // Each set of sizes that may be 1 together, smaller ones before those that they are in.
  for (uint32_t set = 0; set < (1U << may_be_one.size()); ++set) {
    std::vector<Expr> ones = {1};
    for (size_t i = 0; i < may_be_one.size(); ++i)
      if ((set >> i & 1U) != 0) ones.push_back(may_be_one[i]);
    if (!depends_on_ones(context, comparing, sizes, strides, order, ones)) continue;
    const auto other = std::ranges::find_if(
        ones, [&](const Expr& e) { return questions.at_hand(sym::equal(e, 1)) != true; });
    if (other != ones.end()) {
      questions.decide_layout(sym::equal(*other, 1));
      continue;
    }
    for (const Expr& one : ones)
      if (!is_one(one)) questions.decide_layout(sym::equal(one, 1));
    questions.need_exact_ones();
  }
}

}  // namespace

std::vector<size_t> stride_order(const ShapeContext& context, const std::vector<Expr>& sizes,
                                 std::span<const std::vector<Expr>> strides,
                                 std::span<const std::vector<Expr>> own) {
  const Order comparing(context, strides);
  std::vector<size_t> order(sizes.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = order.size() - 1 - i;
  order = sorted(comparing, sizes, strides, std::move(order));
  if (context.questions() != nullptr && !comparing.is_general())
    decide_ones(context, comparing, sizes, {strides, own.empty() ? strides : own}, order);
  return order;
}

TensorMeta element_wise_layout(const ShapeContext& context, std::span<const TensorMeta* const> operands) {
  TensorMeta out;
  if (simple_layout(operands, out)) {
    out.sizes = operands.front()->sizes;
    return out;
  }
  out.sizes = broadcast(context, operands);
  std::vector<std::vector<Expr>> strides, own;
  for (const TensorMeta* m : operands) {
    if (m->sizes.empty()) continue;
    strides.push_back(broadcast_strides(context, *m, out.sizes));
    own.emplace_back(out.sizes.size() - m->sizes.size(), Expr(0));
    own.back().insert(own.back().end(), m->strides.begin(), m->strides.end());
  }
  const std::vector<size_t> order = stride_order(context, out.sizes, strides, own);
  if (std::is_sorted(order.rbegin(), order.rend())) {
    out.strides = contiguous_strides(out.sizes);
    return out;
  }
  out.strides.resize(out.sizes.size());
  Expr stride = 1;
  for (size_t d : order) {
    out.strides[d] = stride;
    stride = stride * out.sizes[d];
  }
  return out;
}

TensorMeta element_wise(const ShapeContext& context, std::initializer_list<size_t> positions,
                        ResultType type) {
  Operands operands;
  Operands tensors;
  Promotion promotion(context.default_dtype());
  for (size_t i : positions) {
    if (context.is_none(i)) continue;
    if (context.is_tensor(i)) {
      const TensorMeta& meta = context.tensor(i);
      promotion.add_tensor(meta);
      operands.add(&meta);
      tensors.add(&meta);
    } else {
      if (!is_number(context.arg(i))) not_covered(context, "an operand that is neither tensor nor number");
      promotion.add_number(context.arg(i));
      operands.add(&number_meta(context.arg(i), context.default_dtype()));
    }
  }
  if (tensors.count == 0) not_covered(context, "no tensor among the operands");
  const DType common = common_type(context, promotion, type);
  const Device device = common_device(tensors.span());
  std::vector<TensorMeta> converted;
  if (converts_operands_first(device)) {
    converted.reserve(operands.count);
    for (size_t k = 0; k < operands.count; ++k) {
      const TensorMeta& meta = *operands.metas[k];
      if (meta.dtype == common || meta.sizes.empty() || is_non_overlapping_and_dense(meta)) continue;
      converted.push_back(dense_like(context, meta, common));
      operands.metas[k] = &converted.back();
    }
  }
  TensorMeta out = element_wise_layout(context, operands.span());
  out.device = device;
  out.dtype = final_type(common, type);
  return out;
}

TensorMeta element_wise_like(const ShapeContext& context, size_t layout_of,
                             std::initializer_list<size_t> others, ResultType type) {
  if (!context.is_tensor(layout_of)) not_covered(context, "a number where the rule needs a tensor");
  const TensorMeta& meta = context.tensor(layout_of);
  Promotion promotion(context.default_dtype());
  promotion.add_tensor(meta);
  for (size_t i : others)
    if (is_number(context.arg(i))) promotion.add_number(context.arg(i));
  const DType common = common_type(context, promotion, type);
  const bool convert =
      converts_operands_first(meta.device) && meta.dtype != common && !is_non_overlapping_and_dense(meta);
  const TensorMeta converted = convert ? dense_like(context, meta, common) : TensorMeta{};
  const TensorMeta* const operands[] = {convert ? &converted : &meta};
  TensorMeta out = element_wise_layout(context, operands);
  out.device = meta.device;
  out.dtype = final_type(common, type);
  return out;
}

TensorMeta contiguous_meta(DType dtype, Device device, std::vector<Expr> sizes) {
  TensorMeta out;
  out.dtype = dtype;
  out.device = device;
  out.strides = contiguous_strides(sizes);
  out.sizes = std::move(sizes);
  return out;
}

TensorMeta dense_like(const ShapeContext& context, const TensorMeta& meta, DType dtype) {
  TensorMeta out;
  out.dtype = dtype;
  out.device = meta.device;
  out.sizes = meta.sizes;
  if (is_non_overlapping_and_dense(meta)) {
    out.strides = meta.strides;
    return out;
  }
  out.strides.resize(meta.sizes.size());
  Expr stride = 1;
  for (size_t d : stride_order(context, meta.sizes, {&meta.strides, 1})) {
    out.strides[d] = stride;
    stride = stride * sym::max(meta.sizes[d], 1);
  }
  return out;
}

TensorMeta strided_like(const ShapeContext& context, const TensorMeta& meta) {
  if (is_non_overlapping_and_dense(meta)) return meta;
  TensorMeta distinct = meta;  // the first of what repeats
  std::vector<size_t> repeated;
  for (size_t d = 0; d < meta.sizes.size(); ++d)
    if (is_zero(meta.strides[d]) && !is_one(meta.sizes[d])) {
      repeated.push_back(d);
      distinct.sizes[d] = 1;
    }
  // Where nothing repeats after all, since sizes are 1, a tensor that is dense is laid out alike in both
  // ways.
  const bool matters = !is_zero(meta.storage_offset) || !is_non_overlapping_and_dense(distinct);
  const bool overlaps =
      std::ranges::any_of(repeated, [&](size_t d) { return !matters || !context.equal(meta.sizes[d], 1); });
  return overlaps ? dense_like(context, meta, meta.dtype) : meta;
}

TensorMeta with_format(const ShapeContext& context, const TensorMeta& meta, DType dtype,
                       MemoryFormat format) {
  if (format == MemoryFormat::Preserve) return dense_like(context, meta, dtype);
  TensorMeta out = contiguous_meta(dtype, meta.device, meta.sizes);
  if (format == MemoryFormat::Contiguous) return out;
  if (meta.rank() != (format == MemoryFormat::ChannelsLast ? 4 : 5))
    not_covered(context, "a channels-last format for this rank");
  out.strides = channels_last_strides(meta.sizes);
  return out;
}

Device common_device(std::span<const TensorMeta* const> operands) {
  check(!operands.empty(), "no operands to take the device of");
  for (const TensorMeta* m : operands)
    if (!m->sizes.empty()) return m->device;
  const auto beside =
      std::ranges::find_if(operands, [](const TensorMeta* m) { return !is_on_host(m->device); });
  return beside == operands.end() ? operands.front()->device : (*beside)->device;
}

}  // namespace oxy::ops
