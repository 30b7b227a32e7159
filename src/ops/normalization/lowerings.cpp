#include "ops/normalization/lowerings.h"

#include <cmath>
#include <limits>
#include <numeric>

#include "loop/view.h"
#include "ops/core/lowering_arguments.h"
#include "sym/hints.h"

namespace oxy::ops::lowerings {

using loop::compute_dtype;
using loop::Op;
using loop::ReductionKind;
using Values = std::span<const Value>;

namespace {

struct Moments {
  Tensor mean;  // in the compute type, size 1 in the reduced dimensions
  Tensor rstd;  // 1 / sqrt(variance + eps)
};

Tensor rstd_of(LoweringContext& context, const Tensor& squares, const Expr& count, double eps) {
  return context.pointwise(
      {squares}, squares.sizes, squares.dtype,
      [count, eps](BodyBuilder& b, Values v) {
        return b.unary(Op::Rsqrt, v[0] / b.index(count, v[0].dtype) + eps);
      },
      3);
}

Expr count_along(const Tensor& x, const std::vector<int64_t>& dims) {
  Expr count = 1;
  for (int64_t d : dims) count = count * x.sizes[static_cast<size_t>(d)];
  return count;
}

Moments moments(LoweringContext& context, const Tensor& x, const std::vector<int64_t>& dims, double eps) {
  auto result = context.reduce(ReductionKind::Welford, x, dims, true, compute_dtype(x.dtype));
  return {result[0], rstd_of(context, result[1], count_along(x, dims), eps)};
}

// The trailing dimensions that a list of normalised sizes names.
std::vector<int64_t> trailing(int64_t rank, size_t count) {
  std::vector<int64_t> dims(count);
  std::iota(dims.begin(), dims.end(), rank - static_cast<int64_t>(count));
  return dims;
}

bool is_used(LoweringContext& context, const Node& node, size_t k) {
  return k < node.outputs.size() && node.outputs[k] != graph::kNoValue && context.uses(node.outputs[k]) > 0;
}

void set_statistic(LoweringContext& context, const Node& node, size_t k, const Tensor& x) {
  if (!is_used(context, node, k)) return;
  const TensorMeta& out = context.output_meta(node, k);
  context.set(node.outputs[k], context.cast(context.reshape(x, out.sizes), out.dtype));
}

// A tensor of one element a channel as one that broadcasts along dimension 1.
Tensor per_channel(LoweringContext& context, const Tensor& x, int64_t rank) {
  std::vector<Expr> sizes(static_cast<size_t>(rank) - 1, Expr(1));
  sizes[0] = x.sizes.at(0);
  return context.reshape(x, sizes);
}

void require_floating(const Node& node, const Tensor& x) {
  if (!is_floating(x.dtype)) not_lowered(node, "elements that are not floating");
}

// The operand that is normalised, which is read twice. A backward pass subtracts the mean (output 1) from the
// stored elements, so that the mean has to be theirs.
Tensor normalised_operand(LoweringContext& context, const Node& node) {
  Tensor x = context.operand(node, 0);
  require_floating(node, x);
  context.realise_unless_cheap(x);
  const DType type = x.dtype;
  if (x.is_realised() || compute_dtype(type) == type || !is_used(context, node, 1)) return x;
  return context.pointwise({x}, x.sizes, type,
                           [type](BodyBuilder& b, Values v) { return b.round_to(v[0], type); });
}

// outputs[0] = inputs[0] scaled and shifted: fn over (x, statistics..., weight, bias), missing ones left out.
struct Affine {
  std::vector<Tensor> inputs;
  bool has_weight = false;
  bool has_bias = false;

  void add(LoweringContext& context, const Node& node, size_t weight, size_t bias,
           const std::function<Tensor(const Tensor&)>& shaped) {
    has_weight = !is_none(node, weight);
    if (has_weight) inputs.push_back(shaped(context.operand(node, weight)));
    has_bias = !is_none(node, bias);
    if (has_bias) inputs.push_back(shaped(context.operand(node, bias)));
  }
};

void finish(LoweringContext& context, const Node& node, Affine affine, size_t statistics,
            const std::function<Value(Values)>& normalise) {
  const TensorMeta& out = context.output_meta(node);
  DType type = compute_dtype(out.dtype);
  bool has_weight = affine.has_weight;
  bool has_bias = affine.has_bias;
  context.set(node.outputs[0], context.pointwise(
                                   std::move(affine.inputs), out.sizes, out.dtype,
                                   [=](BodyBuilder& b, Values v) {
                                     std::vector<Value> converted;
                                     for (Value x : v) converted.push_back(b.cast(x, type));
                                     Value result = normalise(converted);
                                     size_t next = 1 + statistics;
                                     if (has_weight) result = result * converted[next++];
                                     if (has_bias) result = result + converted[next];
                                     return result;
                                   },
                                   4));
}

}  // namespace

void layer_norm(LoweringContext& context, const Node& node) {
  const Tensor x = normalised_operand(context, node);
  auto [mean, rstd] = moments(context, x, trailing(x.rank(), expressions(node, 1).size()), real(node, 4));
  set_statistic(context, node, 1, mean);
  set_statistic(context, node, 2, rstd);
  Affine affine{.inputs = {x, mean, rstd}};
  affine.add(context, node, 2, 3, [](const Tensor& t) { return t; });
  finish(context, node, std::move(affine), 2, [](Values v) { return (v[0] - v[1]) * v[2]; });
}

void rms_norm(LoweringContext& context, const Node& node) {
  // (input, normalized_shape, weight, eps)
  const Tensor x = normalised_operand(context, node);
  const DType type = compute_dtype(x.dtype);
  const double eps = !is_none(node, 3)        ? real(node, 3)
                     : type == DType::Float64 ? std::numeric_limits<double>::epsilon()
                                              : std::numeric_limits<float>::epsilon();
  const std::vector<int64_t> dims = trailing(x.rank(), expressions(node, 1).size());
  const Tensor squares =
      context.reduce(ReductionKind::Sum, x, dims, true, type, [](Value v) { return v * v; }).at(0);
  const Tensor rstd = rstd_of(context, squares, count_along(x, dims), eps);
  set_statistic(context, node, 1, rstd);
  Affine affine{.inputs = {x, rstd}};
  affine.add(context, node, 2, 4, [](const Tensor& t) { return t; });  // no bias
  finish(context, node, std::move(affine), 1, [](Values v) { return v[0] * v[1]; });
}

void group_norm(LoweringContext& context, const Node& node) {
  const Tensor x = normalised_operand(context, node);
  const Expr& channels = expression(node, 4);
  const Expr& groups = expression(node, 6);
  Tensor grouped =
      context.reshape(x, {x.sizes.at(0), groups, sym::floordiv(channels, groups), expression(node, 5)});
  auto [mean, rstd] = moments(context, grouped, {2, 3}, real(node, 7));
  set_statistic(context, node, 1, mean);
  set_statistic(context, node, 2, rstd);
  // A group's statistic for every channel of it.
  Expr group_size = sym::floordiv(channels, groups);
  auto by_channel = [&](const Tensor& statistic) {
    std::vector<Expr> sizes(x.sizes.size(), Expr(1));
    sizes[0] = x.sizes[0];
    sizes[1] = channels;
    return context.view(statistic, sizes, [&](const Index& index) {
      return Index{index[0], sym::floordiv(index[1], group_size), 0, 0};
    });
  };
  Affine affine{.inputs = {x, by_channel(mean), by_channel(rstd)}};
  affine.add(context, node, 1, 2, [&](const Tensor& t) { return per_channel(context, t, x.rank()); });
  finish(context, node, std::move(affine), 2, [](Values v) { return (v[0] - v[1]) * v[2]; });
}

namespace {

void batch_norm_with(LoweringContext& context, const Node& node, size_t mean, size_t variance, double eps) {
  Tensor x = context.operand(node, 0);
  require_floating(node, x);
  for (size_t k = 1; k < node.outputs.size(); ++k)
    if (node.outputs[k] != graph::kNoValue && context.uses(node.outputs[k]) > 0) {
      const TensorMeta& out = context.output_meta(node, k);
      if (!(element_count(out) == Expr(0)))
        not_lowered(node, "statistics of a batch that is not normalised by them");
      context.set(node.outputs[k], context.constant(loop::Scalar{0.0}, out.sizes, out.dtype));
    }
  Tensor rstd = context.operand(node, variance);
  DType type = compute_dtype(x.dtype);
  rstd = context.pointwise(
      {rstd}, rstd.sizes, type,
      [eps, type](BodyBuilder& b, Values v) { return b.unary(Op::Rsqrt, b.cast(v[0], type) + eps); }, 3);
  // Where channels are the innermost loop a root for each element would cost more than a pass over the
  // channels.
  if (const TensorMeta& out = context.output_meta(node);
      is_channels_last(out) && !is_contiguous(out) &&
      sym::estimate(element_count(out)) >= context.roots_worth_a_kernel())
    context.realise(rstd);
  auto shaped = [&](const Tensor& t) { return per_channel(context, t, x.rank()); };
  Affine affine{.inputs = {x, shaped(context.operand(node, mean)), shaped(rstd)}};
  affine.add(context, node, 1, 2, shaped);
  finish(context, node, std::move(affine), 2, [](Values v) { return (v[0] - v[1]) * v[2]; });
}

}  // namespace

void batch_norm(LoweringContext& context, const Node& node) {
  if (flag(node, 5)) not_lowered(node, "training");
  batch_norm_with(context, node, 3, 4, real(node, 7));
}

void batch_norm_no_training(LoweringContext& context, const Node& node) {
  batch_norm_with(context, node, 3, 4, real(node, 6));
}

namespace {

// The maximum m of each row, and the sum of exp(element - m).
std::vector<Tensor> maxima_and_sums(LoweringContext& context, const Node& node, const Tensor& x, DType type) {
  if (!is_floating(x.dtype)) not_lowered(node, "elements that are not floating");
  std::vector<int64_t> dims;
  if (x.rank() > 0) dims.push_back(dim(node, 1, x.rank()));
  context.realise_unless_cheap(x);
  auto widened = [type](Value v) { return v.builder->cast(v, type); };
  return context.reduce(ReductionKind::OnlineSoftmax, x, dims, true, type, widened);
}

// Of an element, the maximum and the sum of its row. The sum, which is at least 1 or NaN where there is more
// than -inf, has its reciprocal taken once a row: a product takes a fraction of a quotient's time.
Value part_of_sum(Values v) {
  return exp(v[0] - v[1]) * (v[2].builder->constant(1.0, v[2].dtype) / v[2]);
}

void softmax_as(LoweringContext& context, const Node& node, const std::function<Value(Values)>& fn) {
  Tensor x = context.operand(node, 0);
  const TensorMeta& out = context.output_meta(node);
  DType type = compute_dtype(out.dtype);
  auto result = maxima_and_sums(context, node, x, type);
  context.set(node.outputs[0], context.pointwise(
                                   {x, result[0], result[1]}, out.sizes, out.dtype,
                                   [fn, type](BodyBuilder& b, Values v) {
                                     Value converted[] = {b.cast(v[0], type), v[1], v[2]};
                                     return fn(converted);
                                   },
                                   4));
}

}  // namespace

void softmax_rows(LoweringContext& context, const Node& node) {
  const Tensor x = context.operand(node, 0);
  const auto rows = maxima_and_sums(context, node, x, context.output_meta(node).dtype);
  for (size_t k = 0; k < rows.size(); ++k) context.set(node.outputs[k], rows[k]);
}

void softmax(LoweringContext& context, const Node& node) {
  softmax_as(context, node, part_of_sum);
}

void log_softmax(LoweringContext& context, const Node& node) {
  softmax_as(context, node, [](Values v) { return v[0] - v[1] - log(v[2]); });
}

void safe_softmax(LoweringContext& context, const Node& node) {
  softmax_as(context, node, [](Values v) {
    Value nothing = v[1] == v[1].builder->constant(-INFINITY, v[1].dtype);
    return where(nothing, v[0].builder->constant(0.0, v[0].dtype), part_of_sum(v));
  });
}

}  // namespace oxy::ops::lowerings
