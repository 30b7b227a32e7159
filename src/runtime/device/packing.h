// Weights in the layouts that a device's libraries want, and when such a copy is worth its memory.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <string_view>

#include "aten/dtype.h"
#include "aten/schema.h"

namespace oxy::runtime {

// The frozen graph's operators, which a device with a Packing runs. Interned on the first call.
//   packed_linear: x [..., in] and `packed` from pack_linear(weight [out, in]); result [..., out] contiguous.
//   packed_convolution: x in channels-last, `packed_weight` from pack_convolution; result in channels-last.
// activation: one that Packing::has_activation() knows; the residual, of the result's shape and layout, is
// added before the activation (convolution) or at the end (linear, whose activation is then "none").
const OperatorSchema* packed_linear_schema();
const OperatorSchema* packed_convolution_schema();

struct LinearShape {
  int64_t rows = 0;              // product of the leading sizes of x
  int64_t inputs = 0;            // in features
  int64_t outputs = 0;           // out features
  DType dtype = DType::Float32;  // of the weight
};
struct ConvolutionShape {
  std::span<const int64_t> input;   // [batch, channels, ...]
  std::span<const int64_t> weight;  // [out, in / groups, ...]
  std::span<const int64_t> stride, padding, dilation;
  int64_t groups = 1;
  DType dtype = DType::Float32;  // of the weight
};

struct ProductShape {  // [rows, inner] x [inner, columns]
  int64_t rows = 0, inner = 0, columns = 0;
  DType dtype = DType::Float32;
  int64_t divisor = 1;  // divides all sizes that lie side by side in memory; a power of 2
};

// softmax(query @ keys^T + mask) @ values: query [batches, heads, rows, width], keys and values [batches,
// heads, keys, width].
struct AttentionShape {
  DType dtype = DType::Float32;
  int64_t batches = 0, heads = 0, rows = 0, keys = 0, width = 0;
  bool is_masked = false;
};

// What computes it in one call, of operands without gaps in their rows.
struct AttentionOperator {
  const OperatorSchema* op = nullptr;  // null: the products and the softmax are as fast
  bool takes_float_mask = false;       // beside operands of half precision
  bool takes_nothing = false;          // operands without elements
  int64_t alignment = 1;               // elements that divide where rows of operands and the mask begin
};

struct Decision {
  bool pack = false;
  std::string_view reason;
};

// In which layout a library runs a convolution fastest whose weight is not packed.
enum class PlainLayout : uint8_t {
  ChannelsLast,
  ChannelsLastWithWeight,  // the library would convert a weight that comes otherwise
  Contiguous,
  Either,
};

// Of one kind of device. Thread-safe.
class Packing {
 public:
  virtual ~Packing() = default;

  // "none", "relu", "gelu", "gelu_tanh", "hardswish", "hardsigmoid", "silu", "sigmoid", "tanh" are those that
  // a device may have; with a residual "none", and for convolutions "relu".
  virtual bool has_activation(std::string_view activation, bool with_residual) const = 0;

  // Whether a packed copy of a weight saves time that is worth its bytes. `replaces`: the graph holds no
  // other use of an unpacked copy of its own (a weight with a batch norm folded in exists only for this
  // call), so packing costs no memory.
  virtual Decision should_pack(const LinearShape& shape, bool replaces) const = 0;
  virtual Decision should_pack(const ConvolutionShape& shape, bool replaces) const = 0;
  virtual PlainLayout plain_layout(const ConvolutionShape& shape) const = 0;
  // Its library adds the bias of a convolution by a kernel of its own.
  virtual bool separates_bias() const { return false; }
  // Generated kernels compute products of one row and of a transposed matrix as fast as its library.
  virtual bool generates_vector_products(DType /*dtype*/) const { return false; }
  // Generated kernels convolve each channel with a window of its own faster than its library.
  virtual bool generates_depthwise_convolutions(DType /*dtype*/) const { return false; }
  // Its library stores a product of operands of this type as float32 if it is asked to.
  virtual bool widens_products(DType /*dtype*/) const { return false; }
  // Its library's product applies this activation to its result before it stores it.
  virtual bool product_applies(std::string_view /*activation*/, DType /*dtype*/) const { return false; }
  // The operator that attention is which a program writes as products.
  virtual AttentionOperator attention(const AttentionShape& /*shape*/) const { return {}; }
  // Sizes of matrix products that lie side by side in memory had better be multiples of so many elements, a
  // power of 2.
  virtual int64_t product_alignment(DType /*dtype*/) const { return 1; }
  // Whether a product is faster with sizes padded to product_alignment(), if so many bytes are copied for it
  // at each call, in so many kernels.
  virtual bool should_pad(const ProductShape& /*shape*/, int64_t /*copied_bytes*/, int64_t /*copies*/) const {
    return false;
  }

  // The opaque packed copy of a weight for inputs of this shape; any input shape still gives the right
  // answer. The weight is contiguous, of the shape's dtype and on this device; it is read once and not kept.
  virtual at::Tensor pack_linear(const at::Tensor& weight, const LinearShape& shape) const = 0;
  virtual at::Tensor pack_convolution(const at::Tensor& weight, const ConvolutionShape& shape) const = 0;
  // Bytes of a packed or plain tensor.
  virtual int64_t bytes(const at::Tensor& tensor) const = 0;
};

}  // namespace oxy::runtime
