#include "ops/attention/shapes.h"

#include "ops/core/element_wise.h"

namespace oxy::ops::shapes {
namespace {

// Sizes [batch, heads, positions, width] laid out as [batch, positions, heads, width].
TensorMeta heads_inside(DType dtype, Device device, std::vector<Expr> sizes) {
  TensorMeta out = contiguous_meta(dtype, device, {sizes[0], sizes[2], sizes[1], sizes[3]});
  std::swap(out.sizes[1], out.sizes[2]);
  std::swap(out.strides[1], out.strides[2]);
  return out;
}

}  // namespace

Metas attention_for_cpu(const ShapeContext& context) {
  const TensorMeta& query = context.tensor(0);
  const TensorMeta& value = context.tensor(2);
  if (query.rank() != 4 || value.rank() != 4 || !is_floating(query.dtype))
    not_covered(context, "operands of this kind");
  const std::vector<Expr>& q = query.sizes;
  const DType accumulate = query.dtype == DType::Float64 ? DType::Float64 : DType::Float32;
  TensorMeta output = dense_like(context, query, query.dtype);
  TensorMeta log_sums = contiguous_meta(accumulate, query.device, {q[0], q[2], q[1]});
  std::swap(log_sums.sizes[1], log_sums.sizes[2]);
  std::swap(log_sums.strides[1], log_sums.strides[2]);
  return {output, log_sums};
}

Metas attention_for_cpu_backward(const ShapeContext& context) {
  Metas out;
  for (size_t i : {1, 2, 3}) {
    const TensorMeta& meta = context.tensor(i);
    if (meta.rank() != 4) not_covered(context, "operands of another rank");
    out.push_back(heads_inside(meta.dtype, meta.device, meta.sizes));
  }
  return out;
}

Metas encoder_layer(const ShapeContext& context) {
  const TensorMeta& source = context.tensor(0);
  if (source.rank() != 3) not_covered(context, "an input of another rank");
  return {contiguous_meta(source.dtype, source.device, source.sizes)};
}

namespace {

constexpr int64_t kRowsOfLogSums = 32;  // of which the memory-efficient kernel writes whole groups

void need_heads(const ShapeContext& context) {
  for (size_t i : {0, 1, 2})
    if (context.tensor(i).rank() != 4 || !is_floating(context.tensor(i).dtype))
      not_covered(context, "operands of this kind");
}

// The state of the generator, by which the backward pass drops out what the forward pass did.
TensorMeta generator_number(Device device) {
  return contiguous_meta(DType::Int64, device, {});
}

}  // namespace

Metas efficient_attention(const ShapeContext& context) {
  need_heads(context);
  const TensorMeta& query = context.tensor(0);
  const std::vector<Expr>& q = query.sizes;
  const Expr groups = sym::floordiv(q[2] + (kRowsOfLogSums - 1), kRowsOfLogSums);
  const Expr rows = flag(context, 4) ? groups * kRowsOfLogSums : Expr(0);
  return {heads_inside(query.dtype, query.device, {q[0], q[1], q[2], context.tensor(2).sizes[3]}),
          contiguous_meta(DType::Float32, query.device, {q[0], q[1], rows}), generator_number(query.device),
          generator_number(query.device)};
}

Metas cudnn_attention(const ShapeContext& context) {
  need_heads(context);
  const TensorMeta& query = context.tensor(0);
  const std::vector<Expr>& q = query.sizes;
  if (!context.equal(q[3], context.tensor(2).sizes[3])) not_covered(context, "values of another width");
  const TensorMeta left_out = generator_number(query.device);
  return {dense_like(context, query, query.dtype),
          contiguous_meta(DType::Float32, query.device, {q[0], q[1], q[2], Expr(1)}),
          left_out,
          left_out,
          generator_number(query.device),
          generator_number(query.device),
          left_out};
}

std::vector<bool> cudnn_attention_results(const ShapeContext&) {
  return {true, true, false, false, true, true, false};
}

Metas flash_attention(const ShapeContext& context) {
  need_heads(context);
  const TensorMeta& query = context.tensor(0);
  const std::vector<Expr>& q = query.sizes;
  constexpr size_t kDebugMask = 5;
  constexpr int64_t kWidths = 8;  // others are padded, and the result is a part of the padded one
  if (flag(context, kDebugMask)) not_covered(context, "a mask for debugging");
  if (!context.divisible(q[3], kWidths)) not_covered(context, "heads of this width");
  const TensorMeta left_out = contiguous_meta(query.dtype, query.device, {Expr(0)});
  return {dense_like(context, query, query.dtype),
          contiguous_meta(DType::Float32, query.device, {q[0], q[1], q[2]}),
          left_out,
          left_out,
          contiguous_meta(DType::UInt64, query.device, {Expr(2)}),
          contiguous_meta(DType::UInt64, query.device, {}),
          left_out};
}

std::vector<bool> flash_attention_results(const ShapeContext&) {
  return {true, true, false, false, true, true, true};
}

std::vector<Expr> attention_lengths(const ShapeContext& context) {
  return {context.tensor(0).sizes[2], context.tensor(1).sizes[2]};
}

Metas efficient_attention_backward(const ShapeContext& context) {
  Metas out = attention_for_cpu_backward(context);
  // The kernel writes rows of whole groups, of which the gradient is a part.
  constexpr size_t kBias = 4;
  constexpr int64_t kGroup = 16;
  TensorMeta bias = out.front();
  if (context.is_tensor(kBias)) {
    const TensorMeta& meta = context.tensor(kBias);
    std::vector<Expr> sizes = meta.sizes;
    sizes.back() = sym::floordiv(sizes.back() + (kGroup - 1), kGroup) * kGroup;
    bias = contiguous_meta(meta.dtype, meta.device, std::move(sizes));
    bias.sizes = meta.sizes;
  }
  out.push_back(std::move(bias));
  return out;
}

std::vector<bool> efficient_attention_gradients(const ShapeContext& context) {
  constexpr size_t kBias = 4, kMask = 10;
  const auto& mask = std::get<std::vector<bool>>(context.arg(kMask));
  return {true, true, true, context.is_tensor(kBias) && mask.at(3)};
}

Metas attention_backward(const ShapeContext& context) {
  Metas out;
  for (size_t i : {1, 2, 3}) {
    const TensorMeta& meta = context.tensor(i);
    if (meta.rank() != 4) not_covered(context, "operands of another rank");
    out.push_back(dense_like(context, meta, meta.dtype));
  }
  return out;
}

}  // namespace oxy::ops::shapes
