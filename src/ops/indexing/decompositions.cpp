#include "ops/indexing/decompositions.h"

#include "base/error.h"

namespace oxy::ops::decompositions {

using graph::Argument;
using graph::ValueRef;

namespace {

struct Blocks {
  std::vector<Expr> batch;
  Expr channels;
  Expr height;
  Expr width;
};

Blocks blocks(const TensorMeta& meta) {
  const size_t rank = meta.sizes.size();
  Blocks b{{meta.sizes.begin(), meta.sizes.end() - 3},
           meta.sizes[rank - 3],
           meta.sizes[rank - 2],
           meta.sizes[rank - 1]};
  return b;
}

std::vector<Expr> joined(std::vector<Expr> front, std::initializer_list<Expr> back) {
  front.insert(front.end(), back);
  return front;
}

// Regroups the last dimensions: view as `split`, permute the dimensions behind the batch, view as the result.
ValueRef regrouped(Composer& c, const std::vector<Expr>& batch, std::initializer_list<Expr> split,
                   std::initializer_list<int64_t> order) {
  const ValueRef pieces = c.call("aten::view", {c.arg(0), joined(batch, split)});
  std::vector<Expr> dims;
  const auto front = static_cast<int64_t>(batch.size());
  for (int64_t d = 0; d < front; ++d) dims.emplace_back(d);
  for (int64_t d : order) dims.emplace_back(front + d);
  const ValueRef moved = c.call("aten::permute", {pieces, dims});
  const ValueRef packed = c.call("aten::clone", {moved, MemoryFormat::Contiguous});
  return c.call("aten::view", {packed, c.result().sizes});
}

ValueRef zeros(Composer& c, const Argument& sizes) {
  const TensorMeta grad = c.meta(c.arg(0));
  const Argument zero = is_floating(grad.dtype) ? Argument(0.0) : Argument(Expr(0));
  return c.call("aten::full", {sizes, zero, grad.dtype, Argument{}, grad.device});
}

}  // namespace

std::vector<ValueRef> pixel_shuffle(Composer& c) {
  const Expr factor = c.integer(1);
  const Blocks b = blocks(c.meta(c.arg(0)));
  const Expr channels = sym::floordiv(b.channels, factor * factor);
  return {regrouped(c, b.batch, {channels, factor, factor, b.height, b.width}, {0, 3, 1, 4, 2})};
}

std::vector<ValueRef> pixel_unshuffle(Composer& c) {
  const Expr factor = c.integer(1);
  if (c.result().sizes == c.meta(c.arg(0)).sizes)
    return {c.call("aten::clone", {c.arg(0), MemoryFormat::Preserve})};
  const Blocks b = blocks(c.meta(c.arg(0)));
  const Expr height = sym::floordiv(b.height, factor);
  const Expr width = sym::floordiv(b.width, factor);
  return {regrouped(c, b.batch, {b.channels, height, factor, width, factor}, {0, 2, 4, 1, 3})};
}

std::vector<ValueRef> slice_backward(Composer& c) {
  // (grad_output, input_sizes, dim, start, end, step)
  return {
      c.call("aten::slice_scatter", {zeros(c, c.arg(1)), c.arg(0), c.arg(2), c.arg(3), c.arg(4), c.arg(5)})};
}

std::vector<ValueRef> select_backward(Composer& c) {
  // (grad_output, input_sizes, dim, index)
  return {c.call("aten::select_scatter", {zeros(c, c.arg(1)), c.arg(0), c.arg(2), c.arg(3)})};
}

std::vector<ValueRef> embedding_dense_backward(Composer& c) {
  // (grad_output, indices, num_weights, padding_idx, scale_grad_by_freq)
  const TensorMeta grad = c.meta(c.arg(0));
  const bool adds_exactly = grad.dtype == DType::Float32 || grad.dtype == DType::Float64;
  if (c.flag(4) || !adds_exactly)
    throw Unsupported("frequencies, or an element type that kernels do not add in place");
  const Expr width = grad.sizes.back();
  Expr count = 1;
  for (const Expr& size : c.meta(c.arg(1)).sizes) count = count * size;
  const auto reshaped = [&](const Argument& x, std::vector<Expr> sizes) {
    return c.call("aten::view", {c.call("aten::clone", {x, MemoryFormat::Contiguous}), std::move(sizes)});
  };
  const ValueRef indices = reshaped(c.arg(1), {count});
  ValueRef rows = reshaped(c.arg(0), {count, width});
  // A negative one is no index: none is skipped.
  if (const Expr padding = std::get<Expr>(c.arg(3)); !padding.is_constant() || padding.constant() >= 0) {
    const ValueRef skipped = c.call("aten::eq.Scalar", {indices, padding});
    const ValueRef column = c.call("aten::unsqueeze", {skipped, Expr(1)});
    rows = c.call("aten::masked_fill.Scalar", {rows, column, 0.0});
  }
  const ValueRef start = zeros(c, std::vector<Expr>{std::get<Expr>(c.arg(2)), width});
  return {c.call("aten::index_put", {start, graph::ValueList{{indices.id}}, rows, true})};
}

std::vector<ValueRef> is_in_number(Composer& c) {
  // (elements, test_element, *, assume_unique, invert)
  return {c.call(c.flag(3) ? "aten::ne.Scalar" : "aten::eq.Scalar", {c.arg(0), c.arg(1)})};
}

std::vector<ValueRef> index_put(Composer& c) {
  // (self, indices, values, accumulate, unsafe)
  return {c.call("aten::index_put", {c.arg(0), c.arg(1), c.arg(2), c.arg(3)})};
}

}  // namespace oxy::ops::decompositions
