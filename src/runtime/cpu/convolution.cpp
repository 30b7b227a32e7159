// Convolutions that are not packed: 1x1 as a matrix product into the planned buffer, the rest by oneDNN.
#include <ATen/Context.h>
#include <ATen/ops/mkldnn_convolution_native.h>

#include <algorithm>

#include "runtime/cpu/gemm.h"
#include "runtime/cpu/handlers.h"

namespace oxy::runtime {

namespace {

// Below this many multiply-adds ATen's own loops are quicker than setting up a oneDNN primitive.
constexpr int64_t kLeastWork = 1 << 17;

bool all(const std::vector<int64_t>& values, int64_t wanted) {
  return std::all_of(values.begin(), values.end(), [&](int64_t v) { return v == wanted; });
}

// Elements of a [batch, channels, pixels...] tensor as `pixels` points of one stride, if they are.
std::optional<int64_t> pixel_stride(const TensorSpec& spec) {
  int64_t expected = -1;
  int64_t stride = 1;
  for (size_t d = spec.sizes.size(); d-- > 2;) {
    if (spec.sizes[d] == 1) continue;
    if (expected < 0)
      stride = spec.strides[d];
    else if (spec.strides[d] != expected)
      return std::nullopt;
    expected = spec.strides[d] * spec.sizes[d];
  }
  return stride;
}

struct Shape {
  int64_t batch, channels, pixels;
};

Shape shape_of(const TensorSpec& spec) {
  Shape shape{spec.sizes[0], spec.sizes[1], 1};
  for (size_t d = 2; d < spec.sizes.size(); ++d) shape.pixels *= spec.sizes[d];
  return shape;
}

// [rows, columns] with these strides, from element `offset` of the tensor on.
TensorSpec matrix(int64_t rows, int64_t columns, int64_t row_stride, int64_t column_stride, int64_t offset) {
  return {c10::kFloat, {rows, columns}, {row_stride, column_stride}, offset};
}

struct PointwiseCall {
  Slot x, weight, bias, result;
  std::vector<TensorSpec> x_parts, result_parts;  // one product each
  TensorSpec weight_matrix;
  std::optional<TensorSpec> bias_matrix;
  bool channels_first;

  void operator()(at::Tensor* tensors) const {
    const at::Tensor w = view_of(tensors[weight], weight_matrix);
    for (size_t i = 0; i < x_parts.size(); ++i) {
      const at::Tensor in = view_of(tensors[x], x_parts[i]);
      const at::Tensor out = view_of(tensors[result], result_parts[i]);
      if (bias_matrix) out.copy_(view_of(tensors[bias], *bias_matrix));
      onednn_matmul(channels_first ? w : in, channels_first ? in : w, out, bias_matrix ? 1.0f : 0.0f);
    }
  }
};

// A 1x1 convolution of stride 1 is out = weight x pixels (channels first) or pixels x weight^T (channels
// last).
Invoke prepare_pointwise(const CallSite& site) {
  if (!site.planned(0)) return {};
  const Slot x = site.tensor(0), weight = site.tensor(1), bias = site.tensor(2),
             result = site.results[0].slot;
  const TensorSpec &in = site.spec(x), &w = site.spec(weight), &out = site.spec(result);
  const auto in_stride = pixel_stride(in);
  const auto out_stride = pixel_stride(out);
  if (!in_stride || !out_stride || w.strides[1] != 1 || w.strides[0] != w.sizes[1]) return {};
  if (bias != kNoSlot && site.spec(bias).strides[0] != 1) return {};
  const auto [batch, channels, pixels] = shape_of(in);
  const int64_t outputs = out.sizes[1];
  if (!onednn_pays(batch * pixels * outputs, channels)) return {};
  PointwiseCall call{x, weight, bias, result, {}, {}, {}, std::nullopt, false};
  if (*in_stride == 1 && *out_stride == 1 && in.strides[1] == pixels && out.strides[1] == pixels) {
    call.channels_first = true;
    call.weight_matrix = matrix(outputs, channels, channels, 1, 0);
    if (bias != kNoSlot) call.bias_matrix = matrix(outputs, pixels, 1, 0, 0);
    for (int64_t b = 0; b < batch; ++b) {
      call.x_parts.push_back(matrix(channels, pixels, pixels, 1, b * in.strides[0]));
      call.result_parts.push_back(matrix(outputs, pixels, pixels, 1, b * out.strides[0]));
    }
    return call;
  }
  const bool batch_follows =
      batch == 1 || (in.strides[0] == pixels * channels && out.strides[0] == pixels * outputs);
  if (in.strides[1] == 1 && out.strides[1] == 1 && *in_stride == channels && *out_stride == outputs &&
      batch_follows) {
    call.weight_matrix = matrix(channels, outputs, 1, channels, 0);
    if (bias != kNoSlot) call.bias_matrix = matrix(batch * pixels, outputs, 0, 1, 0);
    call.x_parts.push_back(matrix(batch * pixels, channels, channels, 1, 0));
    call.result_parts.push_back(matrix(batch * pixels, outputs, outputs, 1, 0));
    return call;
  }
  return {};
}

}  // namespace

// aten::convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)
Invoke prepare_convolution(const CallSite& site) {
  if (site.results.size() != 1 || site.results[0].slot == kNoSlot || site.flag(6)) return {};
  const Slot x = site.tensor(0), weight = site.tensor(1), bias = site.tensor(2);
  const TensorSpec& w = site.spec(weight);
  const TensorSpec& out = site.spec(site.results[0].slot);
  for (const Slot slot : {x, weight, bias})
    if (slot != kNoSlot && site.spec(slot).dtype != c10::kFloat) return {};
  const int64_t spatial = w.rank() - 2;
  if (site.spec(x).rank() != w.rank() || spatial < 1 || spatial > 3) return {};
  if (!at::globalContext().hasMKLDNN() || !at::globalContext().userEnabledMkldnn()) return {};
  const auto expand = [&](std::vector<int64_t> values) {
    if (values.size() == 1) values.resize(static_cast<size_t>(spatial), values[0]);
    return values;
  };
  const auto stride = expand(site.integers(3)), padding = expand(site.integers(4)),
             dilation = expand(site.integers(5));
  const int64_t groups = static_cast<int64_t>(site.number(8));
  const std::vector<int64_t> kernel(w.sizes.begin() + 2, w.sizes.end());
  if (out.element_count() == 0 || w.element_count() == 0) return {};
  const int64_t work = out.element_count() * (w.element_count() / w.sizes[0]);
  if (work < kLeastWork) return {};
  if (groups == 1 && all(kernel, 1) && all(stride, 1) && all(padding, 0))
    if (Invoke pointwise = prepare_pointwise(site)) return pointwise;
  if (spatial == 1) return {};  // ATen makes it two-dimensional first
  return [x, weight, bias, stride, padding, dilation, groups, where = site.results[0],
          spec = &out](at::Tensor* tensors) {
    std::optional<at::Tensor> b;
    if (bias != kNoSlot) b = tensors[bias];
    deliver(tensors, where, *spec,
            at::native::mkldnn_convolution(tensors[x], tensors[weight], b, padding, stride, dilation, groups),
            true);
  };
}

}  // namespace oxy::runtime
