#include "runtime/cuda/convolution_layouts.h"

#include "base/error.h"

namespace oxy::runtime {

namespace {

class CudaPacking : public Packing {
 public:
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
};

}  // namespace

const Packing& cuda_packing() {
  static const CudaPacking& packing = *new CudaPacking;
  return packing;
}

}  // namespace oxy::runtime
