#include "ops/normalization/decompositions.h"

#include "base/error.h"
#include "loop/builder.h"

namespace oxy::ops::decompositions {

using graph::Argument;
using graph::ValueRef;

namespace {

ValueRef sum_over(Composer& c, ValueRef value, std::vector<Expr> dims, bool keepdim) {
  return c.call("aten::sum.dim_IntList", {value, std::move(dims), keepdim});
}

// A vector of one number a channel, shaped to broadcast over batches [batch, channels, ...].
ValueRef by_channel(Composer& c, const Argument& vector, const TensorMeta& batch) {
  std::vector<Expr> sizes(static_cast<size_t>(batch.rank()) - 1, Expr(1));
  sizes[0] = batch.sizes[1];
  return c.call("aten::view", {vector, std::move(sizes)});
}

std::vector<Expr> all_but_channels(const TensorMeta& batch) {
  std::vector<Expr> dims = {0};
  for (int64_t d = 2; d < batch.rank(); ++d) dims.emplace_back(d);
  return dims;
}

// An operand from which its mean is subtracted, in the type's own precision: the mean is that of the stored
// elements, and where all are near to it, the digits that memory does not hold would be most of the
// difference.
ValueRef as_stored(Composer& c, ValueRef operand) {
  const DType type = c.meta(operand).dtype;
  return loop::compute_dtype(type) == type ? operand : c.call("oxyfuel::as_stored", {operand});
}

// Elements a channel.
Expr elements_of_a_channel(const TensorMeta& batch) {
  Expr count = batch.sizes[0];
  for (int64_t d = 2; d < batch.rank(); ++d) count = count * batch.sizes[static_cast<size_t>(d)];
  if (count == Expr(0) || batch.sizes[1] == Expr(0)) throw Unsupported("empty batches");
  return count;
}

// The dimensions of a batch that is normalized along the last ones, whose sizes are given.
struct Parts {
  std::vector<Expr> outer;
  std::vector<Expr> inner;
  Expr count = 1;  // elements that are normalized together
};

Parts parts_of(const TensorMeta& input, const Argument& normalized_shape) {
  const auto inner = static_cast<int64_t>(std::get<std::vector<Expr>>(normalized_shape).size());
  Parts parts;
  for (int64_t d = 0; d < input.rank(); ++d) {
    (d < input.rank() - inner ? parts.outer : parts.inner).emplace_back(d);
    if (d >= input.rank() - inner) parts.count = parts.count * input.sizes[static_cast<size_t>(d)];
  }
  return parts;
}

// In the layout of `wanted`, which is a plain format.
ValueRef laid_out(Composer& c, ValueRef value, const TensorMeta& wanted) {
  if (c.meta(value).strides == wanted.strides) return value;
  const MemoryFormat format = is_contiguous(wanted) ? MemoryFormat::Contiguous
                              : wanted.rank() == 5  ? MemoryFormat::ChannelsLast3d
                                                    : MemoryFormat::ChannelsLast;
  return c.call("aten::clone", {value, format});
}

}  // namespace

std::vector<ValueRef> softmax_backward(Composer& c) {
  // (grad_output, output, dim, input_dtype)
  const ValueRef product = c.call("aten::mul.Tensor", {c.arg(0), c.arg(1)});
  const ValueRef total = sum_over(c, product, {Expr(c.integer(2))}, true);
  const ValueRef gradient =
      c.call("aten::sub.Tensor", {product, c.call("aten::mul.Tensor", {c.arg(1), total})});
  return {c.convert(gradient, c.result(0).dtype)};
}

std::vector<ValueRef> log_softmax_backward(Composer& c) {
  const ValueRef total = c.call("aten::sum.dim_IntList", {c.arg(0), std::vector<Expr>{c.integer(2)}, true});
  const ValueRef share = c.call("aten::mul.Tensor", {c.call("aten::exp", {c.arg(1)}), total});
  return {c.convert(c.call("aten::sub.Tensor", {c.arg(0), share}), c.result(0).dtype)};
}

std::vector<ValueRef> layer_norm_backward(Composer& c) {
  // (grad_out, input, normalized_shape, mean, rstd, weight, bias, output_mask)
  const TensorMeta input = c.meta(c.arg(1));
  const DType wide = c.meta(c.arg(3)).dtype;
  const auto [outer_dims, inner_dims, count] = parts_of(input, c.arg(2));
  if (outer_dims.empty()) throw Unsupported("a single row");
  const ValueRef gradient = c.convert(std::get<ValueRef>(c.arg(0)), wide);
  const ValueRef centred = c.call("aten::sub.Tensor", {as_stored(c, std::get<ValueRef>(c.arg(1))), c.arg(3)});
  const ValueRef normalized = c.call("aten::mul.Tensor", {centred, c.arg(4)});
  const auto of_input = [&] {
    const ValueRef weighted = c.is_none(5) ? gradient : c.call("aten::mul.Tensor", {gradient, c.arg(5)});
    const ValueRef mean = c.divide(sum_over(c, weighted, inner_dims, true), count);
    const ValueRef product = c.call("aten::mul.Tensor", {weighted, normalized});
    const ValueRef slope = c.divide(sum_over(c, product, inner_dims, true), count);
    const ValueRef level = c.call("aten::sub.Tensor", {weighted, mean});
    const ValueRef rest =
        c.call("aten::sub.Tensor", {level, c.call("aten::mul.Tensor", {normalized, slope})});
    return c.call("aten::mul.Tensor", {rest, c.arg(4)});
  };
  const auto of_weight = [&] {
    return sum_over(c, c.call("aten::mul.Tensor", {gradient, normalized}), outer_dims, false);
  };
  std::vector<ValueRef> gradients(3, ValueRef{graph::kNoValue});
  if (c.has_result(0)) gradients[0] = of_input();
  if (c.has_result(1)) gradients[1] = of_weight();
  if (c.has_result(2)) gradients[2] = sum_over(c, gradient, outer_dims, false);
  for (size_t i = 0; i < gradients.size(); ++i)
    if (gradients[i].id != graph::kNoValue)
      gradients[i] = laid_out(c, c.convert(gradients[i], c.result(i).dtype), c.result(i));
  return gradients;
}

// Halves are computed in the type of the statistic.
std::vector<ValueRef> rms_norm_backward(Composer& c) {
  // (grad_out, input, normalized_shape, rstd, weight, output_mask)
  const TensorMeta input = c.meta(c.arg(1));
  const DType wide = c.meta(c.arg(3)).dtype;
  const auto [outer_dims, inner_dims, count] = parts_of(input, c.arg(2));
  const auto widened = [&](size_t i) { return c.convert(std::get<ValueRef>(c.arg(i)), wide); };
  const ValueRef gradient = widened(0);
  const ValueRef normalized = c.call("aten::mul.Tensor", {widened(1), c.arg(3)});
  std::vector<ValueRef> gradients(2, ValueRef{graph::kNoValue});
  if (c.has_result(0)) {
    const ValueRef weighted = c.is_none(4) ? gradient : c.call("aten::mul.Tensor", {gradient, widened(4)});
    const ValueRef product = c.call("aten::mul.Tensor", {weighted, normalized});
    const ValueRef slope = c.divide(sum_over(c, product, inner_dims, true), count);
    const ValueRef rest =
        c.call("aten::sub.Tensor", {weighted, c.call("aten::mul.Tensor", {normalized, slope})});
    const ValueRef whole = c.convert(c.call("aten::mul.Tensor", {rest, c.arg(3)}), input.dtype);
    gradients[0] = laid_out(c, whole, c.result(0));
  }
  if (c.has_result(1)) {
    const ValueRef product = c.call("aten::mul.Tensor", {gradient, normalized});
    const ValueRef sum = outer_dims.empty() ? product : sum_over(c, product, outer_dims, false);
    gradients[1] = laid_out(c, c.convert(sum, c.result(1).dtype), c.result(1));
  }
  return gradients;
}

// In single precision where the batch has halves. Sums over the pixels of each channel are all that is needed
// of the batch and the gradient: those of the parameters and of the groups are made of them.
std::vector<ValueRef> group_norm_backward(Composer& c) {
  // (grad_out, input, mean, rstd, weight, N, C, HxW, group, output_mask)
  const TensorMeta input = c.meta(c.arg(1));
  const DType wide = loop::compute_dtype(input.dtype);
  if (is_on_host(input.device) && wide == input.dtype && !is_contiguous(input))
    throw Unsupported("a layout for which the host's own kernel is as fast");
  const Expr groups = c.integer(8);
  const Expr channels = sym::floordiv(input.sizes.at(1), groups);  // of a group
  std::vector<Expr> grouped = {input.sizes.at(0), groups, channels};
  std::vector<Expr> of_channel = {groups, channels};
  std::vector<Expr> of_group = {input.sizes[0], groups, Expr(1)};
  std::vector<Expr> pixels;  // dimensions
  Expr count = channels;     // elements that are normalized together
  for (size_t d = 2; d < input.sizes.size(); ++d) {
    grouped.push_back(input.sizes[d]);
    of_channel.emplace_back(1);
    of_group.emplace_back(1);
    pixels.emplace_back(static_cast<int64_t>(d) + 1);
    count = count * input.sizes[d];
  }
  const auto shaped = [&](size_t i, const std::vector<Expr>& sizes) {
    return c.convert(c.call("aten::view", {c.arg(i), sizes}), wide);
  };
  const auto over_pixels = [&](ValueRef x) { return pixels.empty() ? x : sum_over(c, x, pixels, true); };
  const ValueRef gradient = shaped(0, grouped), rstd = shaped(3, of_group);
  const ValueRef batch = c.convert(as_stored(c, c.call("aten::view", {c.arg(1), grouped})), wide);
  const ValueRef centred = c.call("aten::sub.Tensor", {batch, shaped(2, of_group)});
  const ValueRef normalized = c.call("aten::mul.Tensor", {centred, rstd});
  const ValueRef slopes = over_pixels(c.call("aten::mul.Tensor", {gradient, normalized}));
  const ValueRef levels = over_pixels(gradient);
  std::vector<ValueRef> gradients(3, ValueRef{graph::kNoValue});
  if (c.has_result(0)) {
    const auto weighted = [&](ValueRef x) {
      return c.is_none(4) ? x : c.call("aten::mul.Tensor", {x, shaped(4, of_channel)});
    };
    const auto mean_of_group = [&](ValueRef sums) {
      return c.divide(sum_over(c, weighted(sums), {Expr(2)}, true), count);
    };
    const ValueRef level = c.call("aten::sub.Tensor", {weighted(gradient), mean_of_group(levels)});
    const ValueRef slope = c.call("aten::mul.Tensor", {normalized, mean_of_group(slopes)});
    const ValueRef rest = c.call("aten::sub.Tensor", {level, slope});
    const ValueRef whole = c.convert(c.call("aten::mul.Tensor", {rest, rstd}), input.dtype);
    gradients[0] = laid_out(c, c.call("aten::view", {whole, input.sizes}), c.result(0));
  }
  const auto of_parameter = [&](ValueRef sums, size_t i) {
    const ValueRef over_batch = sum_over(c, sums, {Expr(0)}, false);
    return c.convert(c.call("aten::view", {over_batch, c.result(i).sizes}), c.result(i).dtype);
  };
  if (c.has_result(1)) gradients[1] = of_parameter(slopes, 1);
  if (c.has_result(2)) gradients[2] = of_parameter(levels, 2);
  return gradients;
}

// Statistics may be of a wider type than the batch, as they are under autocast. Then everything is computed
// in their type.
std::vector<ValueRef> batch_norm_functional(Composer& c) {
  // (input, weight, bias, running_mean, running_var, training, momentum, eps)
  const TensorMeta input = c.meta(c.arg(0));
  const DType wide = c.result(1).dtype;
  if (!c.flag(5) || c.is_none(1) || c.is_none(2) || c.meta(c.arg(1)).dtype != wide ||
      c.meta(c.arg(2)).dtype != wide)
    throw Unsupported("fixed statistics, or parameters of another type");
  const Expr count = elements_of_a_channel(input);
  if (count == Expr(1)) throw Unsupported("a single value per channel");
  const ValueRef batch = c.convert(as_stored(c, std::get<ValueRef>(c.arg(0))), wide);
  const std::vector<ValueRef> moments =
      c.call_many("aten::var_mean.correction", {batch, all_but_channels(input), Expr(0), false});
  const ValueRef variance = moments.at(0), mean = moments.at(1);
  const ValueRef deviation = c.call("aten::rsqrt", {c.call("aten::add.Tensor", {variance, c.real(7)})});
  const ValueRef scale = c.call("aten::mul.Tensor", {deviation, c.arg(1)});
  const ValueRef centred = c.call("aten::sub.Tensor", {batch, by_channel(c, mean, input)});
  const ValueRef scaled = c.call("aten::mul.Tensor", {centred, by_channel(c, scale, input)});
  const ValueRef output = c.call("aten::add.Tensor", {scaled, by_channel(c, c.arg(2), input)});
  const auto moved = [&](const Argument& running, ValueRef moment) {
    const ValueRef kept = c.call("aten::mul.Tensor", {running, 1.0 - c.real(6)});
    return c.call("aten::add.Tensor", {kept, moment});
  };
  const ValueRef new_mean = c.call("aten::mul.Tensor", {mean, c.real(6)});
  // Of a variance without bias.
  ValueRef new_variance;
  if (const auto known = count.as_constant()) {
    const auto n = static_cast<double>(*known);
    new_variance = c.call("aten::mul.Tensor", {variance, c.real(6) * (n / (n - 1.0))});
  } else {
    const ValueRef squares = c.call("aten::mul.Tensor", {variance, count});
    new_variance = c.call("aten::mul.Tensor", {c.divide(squares, count - 1), c.real(6)});
  }
  return {c.convert(output, input.dtype), mean, deviation, moved(c.arg(3), new_mean),
          moved(c.arg(4), new_variance)};
}

// Parameters and statistics may be of a wider type than the batch, as above.
std::vector<ValueRef> batch_norm_backward(Composer& c) {
  // (grad_out, input, weight, running_mean, running_var, save_mean, save_invstd, train, eps, output_mask)
  const TensorMeta input = c.meta(c.arg(1));
  if (!c.flag(7) || c.is_none(2) || c.is_none(5) || c.is_none(6))
    throw Unsupported("fixed statistics, or no parameters");
  const DType wide = c.meta(c.arg(5)).dtype;
  if (c.meta(c.arg(2)).dtype != wide || c.meta(c.arg(6)).dtype != wide ||
      c.meta(c.arg(0)).dtype != input.dtype)
    throw Unsupported("parameters of another type");
  const Expr count = elements_of_a_channel(input);
  const std::vector<Expr> dims = all_but_channels(input);
  const ValueRef gradient = c.convert(std::get<ValueRef>(c.arg(0)), wide);
  const ValueRef batch = c.convert(as_stored(c, std::get<ValueRef>(c.arg(1))), wide);
  const ValueRef centred = c.call("aten::sub.Tensor", {batch, by_channel(c, c.arg(5), input)});
  const ValueRef normalized = c.call("aten::mul.Tensor", {centred, by_channel(c, c.arg(6), input)});
  const ValueRef bias_gradient = sum_over(c, gradient, dims, false);
  const ValueRef weight_gradient =
      sum_over(c, c.call("aten::mul.Tensor", {gradient, normalized}), dims, false);
  const auto average = [&](ValueRef sum) { return by_channel(c, c.divide(sum, count), input); };
  const ValueRef slope = c.call("aten::mul.Tensor", {normalized, average(weight_gradient)});
  const ValueRef level = c.call("aten::sub.Tensor", {gradient, average(bias_gradient)});
  const ValueRef rest = c.call("aten::sub.Tensor", {level, slope});
  const ValueRef factor = c.call("aten::mul.Tensor", {c.arg(2), c.arg(6)});
  const ValueRef input_gradient = c.call("aten::mul.Tensor", {rest, by_channel(c, factor, input)});
  return c.without_left_out({c.convert(input_gradient, input.dtype), weight_gradient, bias_gradient});
}

}  // namespace oxy::ops::decompositions
