#include "ops/core/element_wise.h"

#include <algorithm>

#include "base/error.h"
#include "ops/core/shape_arguments.h"
#include "ops/core/stride_order.h"

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
