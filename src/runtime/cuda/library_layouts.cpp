#include "runtime/cuda/library_layouts.h"

#include <algorithm>

#include "base/error.h"
#include "runtime/cuda/attention.h"

namespace oxy::runtime {

namespace {

constexpr int64_t kLoad = 8;  // elements of half precision
constexpr double kHalf = 2;   // bytes
// What products in half precision reach on an H100, measured: operations and bytes a nanosecond, and those of
// kernels that load element by element. Only their relations count.
constexpr double kOperations = 650e3, kBytes = 2.4e3;
constexpr double kNarrowOperations = 95e3, kNarrowBytes = 0.8e3;
constexpr double kLaunch = 2e3;  // nanoseconds, of one kernel more

constexpr int kHopper = 90;  // compute capability

bool is_half(DType dtype) {
  return dtype == DType::Float16 || dtype == DType::BFloat16;
}

class CudaPacking : public Packing {
 public:
  explicit CudaPacking(int capability) : is_hopper_(capability >= kHopper) {}

  bool has_activation(std::string_view /*activation*/, bool /*with_residual*/) const override {
    return false;
  }
  Decision should_pack(const LinearShape& /*shape*/, bool /*replaces*/) const override {
    return {false, "cuBLAS takes weights as they are"};
  }
  Decision should_pack(const ConvolutionShape& /*shape*/, bool /*replaces*/) const override {
    return {false, "cuDNN takes weights as they are"};
  }
  // Tensor cores read channels last, and cuDNN converts what comes otherwise. Convolutions in groups have
  // kernels for contiguous tensors.
  PlainLayout plain_layout(const ConvolutionShape& shape) const override {
    const bool has_tensor_cores =
        shape.dtype == DType::Float16 || shape.dtype == DType::BFloat16 || shape.dtype == DType::Float32;
    return shape.groups == 1 && has_tensor_cores ? PlainLayout::ChannelsLastWithWeight : PlainLayout::Either;
  }
  bool separates_bias() const override { return true; }
  bool generates_vector_products(DType dtype) const override {
    return is_half(dtype) || dtype == DType::Float32;
  }
  // cuDNN compiles kernels for these while the program waits for the first call.
  bool generates_depthwise_convolutions(DType dtype) const override {
    return is_half(dtype) || dtype == DType::Float32;
  }
  bool widens_products(DType dtype) const override { return is_half(dtype); }
  // cuBLASLt's gelu is of the tanh kind, and less precise than float32.
  bool product_applies(std::string_view activation, DType dtype) const override {
    return is_half(dtype) ? activation == "relu" || activation == "gelu_tanh"
                          : activation == "relu" && dtype == DType::Float32;
  }
  AttentionOperator attention(const AttentionShape& shape) const override {
    return attention_on_cuda(shape, is_hopper_);
  }
  // A load of a kernel for tensor cores has 16 bytes. cuBLAS chooses by sizes, not by the distances of rows.
  int64_t product_alignment(DType dtype) const override { return is_half(dtype) ? kLoad : 1; }
  bool should_pad(const ProductShape& shape, int64_t copied_bytes, int64_t copies) const override {
    const auto rows = static_cast<double>(shape.rows), inner = static_cast<double>(shape.inner),
               columns = static_cast<double>(shape.columns);
    const double operations = 2 * rows * inner * columns;
    const double bytes = kHalf * (rows * inner + inner * columns + rows * columns);
    const auto divisor = static_cast<double>(shape.divisor);
    const double as_it_is =
        std::max(operations / (kNarrowOperations * divisor), bytes / (kNarrowBytes * divisor));
    const double padded = std::max(operations / kOperations, bytes / kBytes);
    const double copying = static_cast<double>(copied_bytes) / kBytes + static_cast<double>(copies) * kLaunch;
    return as_it_is > padded + copying;
  }
  at::Tensor pack_linear(const at::Tensor& /*weight*/, const LinearShape& /*shape*/) const override {
    throw InternalError("a weight is packed for a library that packs none");
  }
  at::Tensor pack_convolution(const at::Tensor& /*weight*/,
                              const ConvolutionShape& /*shape*/) const override {
    throw InternalError("a weight is packed for a library that packs none");
  }
  int64_t bytes(const at::Tensor& tensor) const override {
    return static_cast<int64_t>(tensor.storage().nbytes());
  }

 private:
  bool is_hopper_;
};

}  // namespace

const Packing& cuda_packing(int capability) {
  static const CudaPacking& packing = *new CudaPacking(capability);
  return packing;
}

}  // namespace oxy::runtime
