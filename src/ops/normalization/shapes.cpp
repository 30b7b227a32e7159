#include "ops/normalization/shapes.h"

#include <algorithm>

#include "loop/builder.h"
#include "ops/core/element_wise.h"
#include "ops/core/memory_format.h"

namespace oxy::ops::shapes {
namespace {

bool is_half_precision(DType type) {
  return type == DType::Float16 || type == DType::BFloat16;
}

// Kernels for GPUs keep statistics in the type in which they compute them.
DType statistics_type_on_gpu(DType type) {
  return is_half_precision(type) ? DType::Float32 : type;
}

// Statistics are kept in the type of the parameters when those are wider than the input.
DType statistics_type(const TensorMeta& input, std::initializer_list<const TensorMeta*> parameters) {
  for (const TensorMeta* p : parameters)
    if (p != nullptr) return p->dtype == input.dtype ? input.dtype : DType::Float32;
  return input.dtype;
}

TensorMeta empty_vector(DType dtype, Device device) {
  return contiguous_meta(dtype, device, {0});
}

TensorMeta vector_of(const TensorMeta& like, const Expr& size) {
  return contiguous_meta(like.dtype, like.device, {size});
}

void need_channels(const ShapeContext& context, const TensorMeta& input) {
  if (input.rank() < 2) not_covered(context, "an input without channels");
  if (!is_floating(input.dtype)) not_covered(context, "an input of this type");
}

void need_vectors(const ShapeContext& context, const Expr& channels, size_t first, size_t last) {
  for (size_t i = first; i <= last; ++i) {
    if (!context.is_tensor(i)) continue;
    const TensorMeta& parameter = context.tensor(i);
    if (parameter.rank() != 1 || !context.equal(parameter.sizes[0], channels))
      not_covered(context, "parameters of another size than the channels");
  }
}

TensorMeta normalized_batch(const ShapeContext& context, const TensorMeta& input) {
  if (!is_on_host(input.device)) return dense_like(context, input, input.dtype);
  // The kernels work in one of the plain formats; other layouts are made contiguous first.
  if (is_contiguous(input)) return contiguous_meta(input.dtype, input.device, input.sizes);
  if (is_channels_last(context, input))
    return with_format(context, input, input.dtype,
                       input.rank() == 4 ? MemoryFormat::ChannelsLast : MemoryFormat::ChannelsLast3d);
  return in_suggested_format(context, input);
}

// Of a layer norm or batch norm whose weight is argument `weight`, with the bias behind it.
DType saved_statistics_type(const ShapeContext& context, size_t weight) {
  const TensorMeta& input = context.tensor(0);
  if (!is_on_host(input.device)) return statistics_type_on_gpu(input.dtype);
  return statistics_type(input, {optional_tensor(context, weight), optional_tensor(context, weight + 1)});
}

// The number of dimensions before the normalized ones, whose sizes argument 1 gives; `parameters` have them,
// too.
size_t outer_dimensions(const ShapeContext& context, std::initializer_list<size_t> parameters) {
  const TensorMeta& input = context.tensor(0);
  const size_t inner = list(context, 1).size();
  if (inner == 0 || inner > input.sizes.size()) not_covered(context, "a normalized shape of another rank");
  const size_t outer = input.sizes.size() - inner;
  for (size_t d = 0; d < inner; ++d)
    if (!context.equal(input.sizes[outer + d], list(context, 1)[d]))
      not_covered(context, "a normalized shape that is not the input's");
  for (size_t i : parameters)
    if (const TensorMeta* parameter = optional_tensor(context, i))
      if (!are_equal(context, parameter->sizes, list(context, 1)))
        not_covered(context, "parameters of another shape");
  return outer;
}

// One number for each row that is normalized.
TensorMeta statistics_of_rows(const TensorMeta& input, size_t outer, DType type) {
  std::vector<Expr> sizes = input.sizes;
  for (size_t d = outer; d < sizes.size(); ++d) sizes[d] = 1;
  return contiguous_meta(type, input.device, std::move(sizes));
}

}  // namespace

Metas layer_norm(const ShapeContext& context) {
  const TensorMeta& input = context.tensor(0);
  const size_t outer = outer_dimensions(context, {2, 3});
  const TensorMeta mean = statistics_of_rows(input, outer, saved_statistics_type(context, 2));
  return {contiguous_meta(input.dtype, input.device, input.sizes), mean, mean};
}

// Of devices other than the host, where PyTorch composes it of other operators.
Metas rms_norm(const ShapeContext& context) {
  const TensorMeta& input = context.tensor(0);
  const size_t outer = outer_dimensions(context, {2});
  if (!is_floating(input.dtype)) not_covered(context, "an input of this type");
  if (const TensorMeta* weight = optional_tensor(context, 2); weight && weight->dtype != input.dtype)
    not_covered(context, "a weight of another type");
  return {contiguous_meta(input.dtype, input.device, input.sizes),
          statistics_of_rows(input, outer, statistics_type_on_gpu(input.dtype))};
}

namespace {

// The gradient has the input's shape, and the statistics and parameters, which these arguments are, their
// part of it.
void need_like_input(const ShapeContext& context, std::initializer_list<size_t> statistics,
                     std::initializer_list<size_t> parameters) {
  const TensorMeta& input = context.tensor(1);
  const std::vector<Expr>& inner = list(context, 2);
  std::vector<Expr> rows = input.sizes;
  std::vector<Expr> end = input.sizes;
  if (inner.size() > input.sizes.size()) not_covered(context, "a normalized shape of another rank");
  const auto outer = static_cast<std::ptrdiff_t>(input.sizes.size() - inner.size());
  std::fill(rows.begin() + outer, rows.end(), Expr(1));
  end.erase(end.begin(), end.begin() + outer);
  bool fits = are_equal(context, end, inner) && are_equal(context, context.tensor(0).sizes, input.sizes);
  for (const size_t i : statistics) fits = fits && are_equal(context, context.tensor(i).sizes, rows);
  for (const size_t i : parameters)
    if (const TensorMeta* parameter = optional_tensor(context, i))
      fits = fits && are_equal(context, parameter->sizes, inner);
  if (!fits) not_covered(context, "operands of other shapes");
}

// That of the parameter which argument `i` is, if it is there.
TensorMeta gradient_of_parameter(const ShapeContext& context, size_t i, bool is_asked_for) {
  const TensorMeta* parameter = optional_tensor(context, i);
  if (parameter == nullptr && is_asked_for)
    not_covered(context, "the gradient of a parameter that is not there");
  const TensorMeta& like = parameter == nullptr ? context.tensor(1) : *parameter;
  return contiguous_meta(like.dtype, like.device, list(context, 2));
}

}  // namespace

Metas layer_norm_backward(const ShapeContext& context) {
  const TensorMeta& input = context.tensor(1);
  need_like_input(context, {3, 4}, {5, 6});
  const std::vector<bool> mask = output_mask(context);
  return {contiguous_meta(input.dtype, input.device, input.sizes), gradient_of_parameter(context, 5, mask[1]),
          gradient_of_parameter(context, 6, mask[2])};
}

Metas rms_norm_backward(const ShapeContext& context) {
  const TensorMeta& input = context.tensor(1);
  need_like_input(context, {3}, {4});
  return {contiguous_meta(input.dtype, input.device, input.sizes),
          gradient_of_parameter(context, 4, output_mask(context)[1])};
}

namespace {

// With `vectors` arguments of one number a channel behind the input.
Metas normalized_by_channel(const ShapeContext& context, size_t vectors, bool training) {
  const TensorMeta& input = context.tensor(0);
  need_channels(context, input);
  need_vectors(context, input.sizes[1], 1, vectors);
  for (const Expr& size : input.sizes)
    if (training && context.equal(size, 0)) refused_by_eager(context, "statistics of no elements");
  const DType type = saved_statistics_type(context, 1);
  // Kernels for GPUs also save the running statistics, where those are used.
  const bool has_saved = training || !is_on_host(input.device);
  TensorMeta saved =
      has_saved ? contiguous_meta(type, input.device, {input.sizes[1]}) : empty_vector(type, input.device);
  return {normalized_batch(context, input), saved, saved};
}

}  // namespace

Metas batch_norm(const ShapeContext& context) {
  return normalized_by_channel(context, 4, flag(context, 5));
}

Metas batch_norm_without_statistics(const ShapeContext& context) {
  return normalized_by_channel(context, 2, flag(context, 3));
}

Metas batch_norm_inference(const ShapeContext& context) {
  return normalized_by_channel(context, 4, false);
}

namespace {

// The new running statistics behind the results.
Metas with_running_statistics(const ShapeContext& context, Metas results) {
  for (size_t i : {3, 4}) {
    const TensorMeta& statistic = context.tensor(i);
    results.push_back(dense_like(context, statistic, statistic.dtype));
  }
  return results;
}

}  // namespace

Metas batch_norm_functional(const ShapeContext& context) {
  return with_running_statistics(context, batch_norm(context));
}

Metas batch_norm_with_update(const ShapeContext& context) {
  Metas out = normalized_by_channel(context, 4, true);
  out.push_back(empty_vector(DType::UInt8, context.tensor(0).device));  // room that other devices reserve
  return out;
}

Metas batch_norm_with_update_functional(const ShapeContext& context) {
  return with_running_statistics(context, batch_norm_with_update(context));
}

Metas batch_norm_backward(const ShapeContext& context) {
  const TensorMeta& input = context.tensor(1);
  need_channels(context, input);
  if (!are_equal(context, context.tensor(0).sizes, input.sizes))
    not_covered(context, "a gradient of another shape");
  need_vectors(context, input.sizes[1], 2, 4);
  if (flag(context, 7)) need_vectors(context, input.sizes[1], 5, 6);
  const TensorMeta* weight = optional_tensor(context, 2);
  const DType type = weight == nullptr ? input.dtype : weight->dtype;
  // Kernels for GPUs have no gradients of parameters that are not there.
  const bool has_parameters = weight != nullptr || is_on_host(input.device);
  const TensorMeta parameter = has_parameters ? contiguous_meta(type, input.device, {input.sizes[1]})
                                              : empty_vector(type, input.device);
  const TensorMeta& grad = context.tensor(0);
  const bool same_format = (is_contiguous(input) && is_contiguous(grad)) ||
                           (is_channels_last(input) && is_channels_last(grad) && !is_contiguous(input));
  // Kernels for GPUs write a contiguous result if the gradient is in neither format.
  const TensorMeta other = is_on_host(input.device) || is_contiguous(grad)
                               ? in_suggested_format(context, input)
                               : contiguous_meta(input.dtype, input.device, input.sizes);
  return {same_format ? normalized_batch(context, input) : other, parameter, parameter};
}

Metas group_norm(const ShapeContext& context) {
  const TensorMeta& input = context.tensor(0);
  need_channels(context, input);
  need_vectors(context, input.sizes[1], 1, 2);
  const Expr pixels = sym::product(std::span(input.sizes).subspan(2));
  if (!context.equal(expression(context, 3), input.sizes[0]) ||
      !context.equal(expression(context, 4), input.sizes[1]) ||
      !context.equal(expression(context, 5), pixels) ||
      !context.divisible(input.sizes[1], expression(context, 6)))
    not_covered(context, "numbers that are not the input's");
  for (size_t i : {1, 2})
    if (const TensorMeta* parameter = optional_tensor(context, i);
        parameter != nullptr && !is_contiguous(*parameter))
      not_covered(context, "parameters that are not contiguous");
  for (size_t i : {1, 2})
    if (const TensorMeta* parameter = optional_tensor(context, i);
        parameter != nullptr && parameter->dtype != input.dtype &&
        !(is_half_precision(input.dtype) && parameter->dtype == DType::Float32))
      refused_by_eager(context, "parameters of another type");
  const DType type = statistics_type(input, {optional_tensor(context, 1), optional_tensor(context, 2)});
  TensorMeta statistics =
      contiguous_meta(type, input.device, {expression(context, 3), expression(context, 6)});
  return {in_suggested_format(context, input), statistics, statistics};
}

Metas group_norm_backward(const ShapeContext& context) {
  const TensorMeta& input = context.tensor(1);
  const TensorMeta* weight = optional_tensor(context, 4);
  const std::vector<bool> mask = output_mask(context);
  if (weight == nullptr && (mask[1] || mask[2]))
    not_covered(context, "gradients of parameters without a weight");
  TensorMeta parameter = vector_of(weight == nullptr ? input : *weight, expression(context, 6));
  return {in_suggested_format(context, input), parameter, parameter};
}

Metas softmax(const ShapeContext& context) {
  const TensorMeta& self = context.tensor(0);
  dim_argument(context, 1, self.rank());
  if (!is_floating(self.dtype)) not_covered(context, "an operand of this type");
  const bool is_widened = flag(context, 2);
  if (is_widened && (is_on_host(self.device) || !is_half_precision(self.dtype)))
    not_covered(context, "a conversion of these elements on this device");
  return {contiguous_meta(is_widened ? DType::Float32 : self.dtype, self.device, self.sizes)};
}

Metas softmax_rows(const ShapeContext& context) {
  const TensorMeta& self = context.tensor(0);
  if (!is_floating(self.dtype)) not_covered(context, "an operand of this type");
  std::vector<Expr> sizes = self.sizes;
  if (!sizes.empty()) sizes[static_cast<size_t>(dim_argument(context, 1, self.rank()))] = 1;
  const TensorMeta row = contiguous_meta(loop::compute_dtype(self.dtype), self.device, std::move(sizes));
  return {row, row};
}

Metas safe_softmax(const ShapeContext& context) {
  const TensorMeta& self = context.tensor(0);
  dim_argument(context, 1, self.rank());
  const DType dtype = optional_dtype(context, 2).value_or(self.dtype);
  if (!is_floating(dtype)) not_covered(context, "an operand of this type");
  return {contiguous_meta(dtype, self.device, self.sizes)};
}

Metas softmax_backward(const ShapeContext& context) {
  const TensorMeta& grad = context.tensor(0);
  if (!are_equal(context, grad.sizes, context.tensor(1).sizes))
    not_covered(context, "an output of another shape");
  const DType dtype = optional_dtype(context, 3).value_or(grad.dtype);
  if (dtype != grad.dtype && !(is_half_precision(dtype) && grad.dtype == DType::Float32))
    not_covered(context, "a conversion");
  return {contiguous_meta(dtype, grad.device, grad.sizes)};
}

Metas weight_norm(const ShapeContext& context) {
  const TensorMeta& v = context.tensor(0);
  const TensorMeta& g = context.tensor(1);
  const int64_t dim = integer(context, 2);
  if (dim != 0 && dim != v.rank() - 1) not_covered(context, "a dimension that is neither first nor last");
  const DType type = g.dtype == DType::BFloat16 ? DType::Float32 : g.dtype;
  TensorMeta norm = g;
  norm.dtype = type;
  norm.storage_offset = 0;
  return {contiguous_meta(v.dtype, v.device, v.sizes), norm};
}

}  // namespace oxy::ops::shapes
