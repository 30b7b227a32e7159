#include "runtime/cpu/packing.h"

#include <ATen/Context.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <vector>

#include "base/error.h"
#include "runtime/cpu/attention.h"
#include "runtime/cpu/handlers.h"

namespace oxy::runtime {

namespace {

// A linear layer gains from packing where rearranging the weight is a good part of the work: measured 1.4x to
// 2x from 2 to 64 rows, 1.05x to 1.2x from 128 on. A single row reads each weight once either way.
constexpr int64_t kFewestRows = 2;
constexpr int64_t kMostRows = 96;
// A convolution without packing reorders its weight on every call.
constexpr int64_t kConvolutionLeastWork = 1 << 17;

// Contiguous activations are reordered on every call, and for channels-last ones the weight is. By elements
// of input and output to elements of the weight: from the first share on channels-last wins or is even,
// below the second contiguous does (benchmarks/convolution_layouts.py).
constexpr double kChannelsLastShare = 0.5;
constexpr double kContiguousShare = 0.3;

int64_t product(std::span<const int64_t> sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
}

std::vector<int64_t> output_spatial(const ConvolutionShape& shape) {
  std::vector<int64_t> sizes;
  for (size_t d = 2; d < shape.input.size(); ++d) {
    const int64_t reach = shape.dilation[d - 2] * (shape.weight[d] - 1) + 1;
    sizes.push_back(
        std::max<int64_t>(0, shape.input[d] + 2 * shape.padding[d - 2] - reach) / shape.stride[d - 2] + 1);
  }
  return sizes;
}

int64_t work_of(const ConvolutionShape& shape) {
  return shape.input[0] * product(shape.weight) * product(output_spatial(shape));
}

bool has_onednn() {
  return at::globalContext().hasMKLDNN() && at::globalContext().userEnabledMkldnn();
}

template <class Signature>
c10::TypedOperatorHandle<Signature> find(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<Signature>();
}

class OneDnnPacking : public Packing {
 public:
  bool has_activation(std::string_view activation, bool with_residual) const override {
    return has_packed_activation(activation, with_residual);
  }

  Decision should_pack(const LinearShape& shape, bool replaces) const override {
    if (shape.dtype != DType::Float32) return {false, "only float32 weights are packed"};
    if (!has_onednn()) return {false, "this torch has no oneDNN"};
    if (shape.rows < kFewestRows) return {false, "a single row reads every weight once, packed or not"};
    if (shape.inputs * shape.outputs < 1 << 14) return {false, "the weight fits the first cache"};
    if (replaces) return {true, "the packed weight replaces a copy that is needed anyway"};
    if (shape.rows > kMostRows) return {false, "with this many rows packing gains too little for its memory"};
    return {true, "few rows: reading the weight is the work"};
  }

  Decision should_pack(const ConvolutionShape& shape, bool replaces) const override {
    if (shape.dtype != DType::Float32) return {false, "only float32 weights are packed"};
    if (!has_onednn()) return {false, "this torch has no oneDNN"};
    if (shape.input.size() != 4 && shape.input.size() != 5)
      return {false, "only two and three dimensions are packed"};
    if (work_of(shape) < kConvolutionLeastWork && !replaces)
      return {false, "too little work for a oneDNN primitive"};
    return {true, "oneDNN would reorder the weight on every call"};
  }

  PlainLayout plain_layout(const ConvolutionShape& shape) const override {
    if (shape.dtype != DType::Float32 || !has_onednn() || work_of(shape) < kConvolutionLeastWork)
      return PlainLayout::Either;
    const auto output_sizes = output_spatial(shape);
    const auto activations =
        static_cast<double>(product(shape.input) + shape.input[0] * shape.weight[0] * product(output_sizes));
    const double share = activations / static_cast<double>(product(shape.weight));
    if (share >= kChannelsLastShare) return PlainLayout::ChannelsLast;
    return share < kContiguousShare ? PlainLayout::Contiguous : PlainLayout::Either;
  }

  AttentionOperator attention(const AttentionShape& shape) const override { return attention_on_cpu(shape); }

  at::Tensor pack_linear(const at::Tensor& weight, const LinearShape& shape) const override {
    const at::AutoDispatchBelowAutograd below;
    static const auto op =
        find<at::Tensor(const at::Tensor&, std::optional<int64_t>)>("mkldnn::_reorder_linear_weight");
    // A layout made for one row suits no other number of rows.
    return op.call(weight, std::max(shape.rows, kFewestRows));
  }

  at::Tensor pack_convolution(const at::Tensor& weight, const ConvolutionShape& shape) const override {
    const at::AutoDispatchBelowAutograd below;
    static const auto op =
        find<at::Tensor(const at::Tensor&, at::IntArrayRef, at::IntArrayRef, at::IntArrayRef, int64_t,
                        at::OptionalIntArrayRef)>("mkldnn::_reorder_convolution_weight");
    const auto ref = [](std::span<const int64_t> values) {
      return at::IntArrayRef(values.data(), values.size());
    };
    // A weight in channels-last tells oneDNN that the input will be.
    const auto format =
        weight.dim() == 5 ? c10::MemoryFormat::ChannelsLast3d : c10::MemoryFormat::ChannelsLast;
    return op.call(weight.contiguous(format), ref(shape.padding), ref(shape.stride), ref(shape.dilation),
                   shape.groups, ref(shape.input));
  }

  int64_t bytes(const at::Tensor& tensor) const override {
    if (!tensor.is_mkldnn()) return static_cast<int64_t>(tensor.storage().nbytes());
    static const auto op = find<int64_t(const at::Tensor&)>("mkldnn::_nbytes");
    return op.call(tensor);
  }
};

}  // namespace

const Packing& onednn_packing() {
  static const OneDnnPacking packing;
  return packing;
}

}  // namespace oxy::runtime
