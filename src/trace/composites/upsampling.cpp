// Upsampling of symbolic sizes: the size of the result is an expression.

#include <ATen/core/Tensor.h>
#include <ATen/ops/_upsample_bicubic2d_aa_ops.h>
#include <ATen/ops/_upsample_bilinear2d_aa_ops.h>
#include <ATen/ops/_upsample_nearest_exact1d_ops.h>
#include <ATen/ops/_upsample_nearest_exact2d_ops.h>
#include <ATen/ops/_upsample_nearest_exact3d_ops.h>
#include <ATen/ops/upsample_bicubic2d_ops.h>
#include <ATen/ops/upsample_bilinear2d_ops.h>
#include <ATen/ops/upsample_linear1d_ops.h>
#include <ATen/ops/upsample_nearest1d_ops.h>
#include <ATen/ops/upsample_nearest2d_ops.h>
#include <ATen/ops/upsample_nearest3d_ops.h>
#include <ATen/ops/upsample_trilinear3d_ops.h>

#include <cmath>
#include <optional>
#include <utility>

#include "trace/composites/composites.h"
#include "trace/tensors/trace_tensor.h"

namespace oxy::trace {

namespace {

using Sizes = c10::SymDimVector;
using Scales = std::optional<at::ArrayRef<double>>;

constexpr int kMostHalvings = 10;

// floor(size * scale), if the scale is a whole number divided by a power of 2: then no rounding comes into
// it.
std::optional<c10::SymInt> scaled(const c10::SymInt& size, double scale) {
  if (const auto number = size.maybe_as_int())
    return c10::SymInt(static_cast<int64_t>(static_cast<double>(*number) * scale));
  double numerator = scale;
  int64_t denominator = 1;
  for (int k = 0; k < kMostHalvings && numerator != std::floor(numerator); ++k) {
    numerator *= 2;
    denominator *= 2;
  }
  if (!(numerator >= 1) || numerator != std::floor(numerator) || numerator > (1 << 20)) return std::nullopt;
  const c10::SymInt product = size * c10::SymInt(static_cast<int64_t>(numerator));
  return denominator == 1 ? product : product / c10::SymInt(denominator);
}

// Nothing: the sizes are numbers, or PyTorch has something to say of the call.
std::optional<Sizes> symbolic_result_size(const at::Tensor& input, at::OptionalSymIntArrayRef size,
                                          const Scales& scales, size_t dimensions) {
  if (trace_tensor(input) == nullptr || input.dim() != static_cast<int64_t>(dimensions) + 2)
    return std::nullopt;
  if (size.has_value() == scales.has_value()) return std::nullopt;
  if (size)
    return size->size() == dimensions ? std::optional(Sizes(size->begin(), size->end())) : std::nullopt;
  if (scales->size() != dimensions) return std::nullopt;
  Sizes result;
  for (size_t d = 0; d < dimensions; ++d) {
    const std::optional<c10::SymInt> extent =
        scaled(input.sym_size(static_cast<int64_t>(d) + 2), (*scales)[d]);
    if (!extent) return std::nullopt;
    result.push_back(*extent);
  }
  return result;
}

template <size_t... kDimension>
auto with_scales(const Scales& scales, std::index_sequence<kDimension...>, const auto& call) {
  const auto scale = [&](size_t d) { return scales ? std::optional((*scales)[d]) : std::nullopt; };
  return call(scale(kDimension)...);
}

// `Whole` takes sizes or scales for all dimensions, `Operator` both, dimension by dimension.
template <class Whole, class Operator, size_t kDimensions>
at::Tensor nearest(const at::Tensor& input, at::OptionalSymIntArrayRef size, Scales scales) {
  const std::optional<Sizes> result = symbolic_result_size(input, size, scales, kDimensions);
  if (!result) return Whole::redispatch(keys_of_decomposition(input.device()), input, size, scales);
  return with_scales(scales, std::make_index_sequence<kDimensions>(),
                     [&](auto... scale) { return Operator::call(input, *result, scale...); });
}

template <class Whole, class Operator, size_t kDimensions>
at::Tensor smooth(const at::Tensor& input, at::OptionalSymIntArrayRef size, bool align_corners,
                  Scales scales) {
  const std::optional<Sizes> result = symbolic_result_size(input, size, scales, kDimensions);
  if (!result)
    return Whole::redispatch(keys_of_decomposition(input.device()), input, size, align_corners, scales);
  return with_scales(scales, std::make_index_sequence<kDimensions>(),
                     [&](auto... scale) { return Operator::call(input, *result, align_corners, scale...); });
}

}  // namespace

void add_upsampling(torch::Library& library) {
  using namespace at::_ops;  // NOLINT(google-build-using-namespace): the names are the operators'
  library.impl("upsample_nearest1d.vec", &nearest<upsample_nearest1d_vec, upsample_nearest1d, 1>);
  library.impl("upsample_nearest2d.vec", &nearest<upsample_nearest2d_vec, upsample_nearest2d, 2>);
  library.impl("upsample_nearest3d.vec", &nearest<upsample_nearest3d_vec, upsample_nearest3d, 3>);
  library.impl("_upsample_nearest_exact1d.vec",
               &nearest<_upsample_nearest_exact1d_vec, _upsample_nearest_exact1d, 1>);
  library.impl("_upsample_nearest_exact2d.vec",
               &nearest<_upsample_nearest_exact2d_vec, _upsample_nearest_exact2d, 2>);
  library.impl("_upsample_nearest_exact3d.vec",
               &nearest<_upsample_nearest_exact3d_vec, _upsample_nearest_exact3d, 3>);
  library.impl("upsample_linear1d.vec", &smooth<upsample_linear1d_vec, upsample_linear1d, 1>);
  library.impl("upsample_bilinear2d.vec", &smooth<upsample_bilinear2d_vec, upsample_bilinear2d, 2>);
  library.impl("upsample_trilinear3d.vec", &smooth<upsample_trilinear3d_vec, upsample_trilinear3d, 3>);
  library.impl("upsample_bicubic2d.vec", &smooth<upsample_bicubic2d_vec, upsample_bicubic2d, 2>);
  library.impl("_upsample_bilinear2d_aa.vec",
               &smooth<_upsample_bilinear2d_aa_vec, _upsample_bilinear2d_aa, 2>);
  library.impl("_upsample_bicubic2d_aa.vec", &smooth<_upsample_bicubic2d_aa_vec, _upsample_bicubic2d_aa, 2>);
}

}  // namespace oxy::trace
