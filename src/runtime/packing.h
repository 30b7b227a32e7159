// Weights in the layouts that oneDNN's kernels want, and when such a copy is worth its memory.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <string_view>

#include "aten/schema.h"

namespace oxy::runtime {

// The frozen graph's operators (extern/packed.cpp runs them). Interned on the first call.
//   packed_linear: x [..., in] and `packed` from pack_linear(weight [out, in]); result [..., out] contiguous.
//   packed_convolution: x in channels-last, `packed_weight` from pack_convolution; result in channels-last.
// activation: one that has_packed_activation() knows; the residual, of the result's shape and layout, is
// added before the activation (convolution) or at the end (linear, whose activation is then "none").
const OperatorSchema* packed_linear_schema();
const OperatorSchema* packed_convolution_schema();
// "none", "relu", "gelu", "gelu_tanh", "hardswish", "hardsigmoid", "silu", "sigmoid", "tanh"; with a residual
// "none", and for convolutions "relu".
bool has_packed_activation(std::string_view activation, bool with_residual);

struct LinearShape {
  int64_t rows = 0;     // product of the leading sizes of x
  int64_t inputs = 0;   // in features
  int64_t outputs = 0;  // out features
};
struct ConvolutionShape {
  std::span<const int64_t> input;   // [batch, channels, ...]
  std::span<const int64_t> weight;  // [out, in / groups, ...]
  std::span<const int64_t> stride, padding, dilation;
  int64_t groups = 1;
};

struct Decision {
  bool pack = false;
  std::string_view reason;
};

// Whether a packed copy of a weight saves time that is worth its bytes. `replaces` : the graph holds no other
// use of an unpacked copy of its own (a weight with a batch norm folded in exists only for this call), so
// packing costs no memory. docs/notes-cpu-libraries.md has the measurements behind the numbers.
Decision should_pack(const LinearShape& shape, bool replaces);
Decision should_pack(const ConvolutionShape& shape, bool replaces);

// In which layout oneDNN runs a convolution fastest whose weight is not packed.
enum class PlainLayout : uint8_t { ChannelsLast, Contiguous, Either };
PlainLayout plain_layout(const ConvolutionShape& shape);

// The opaque packed copy of a float32 CPU weight for inputs of this shape; any input shape still gives the
// right answer. The weight is read once and not kept.
at::Tensor pack_linear(const at::Tensor& weight, const LinearShape& shape);
at::Tensor pack_convolution(const at::Tensor& weight, const ConvolutionShape& shape);
// Bytes of a packed or plain tensor.
int64_t tensor_bytes(const at::Tensor& tensor);

}  // namespace oxy::runtime
