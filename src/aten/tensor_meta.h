// What is known of a tensor without its data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "aten/dtype.h"
#include "sym/expr.h"

namespace oxy {

using sym::Expr;

struct Device {
  enum class Kind : uint8_t { Cpu, Cuda, Meta };
  Kind kind = Kind::Cpu;
  int8_t index = -1;  // -1: the current device of that kind
  friend bool operator==(const Device&, const Device&) = default;
};
std::string str(Device device);  // "cpu", "cuda:0"
// Where Python's numbers are, and tensors that the host reads while it captures.
constexpr bool is_on_host(Device device) {
  return device.kind == Device::Kind::Cpu;
}

enum class MemoryFormat : uint8_t { Contiguous, Preserve, ChannelsLast, ChannelsLast3d };

struct TensorMeta {
  DType dtype = DType::Float32;
  Device device;
  std::vector<Expr> sizes;    // elements
  std::vector<Expr> strides;  // elements, as many as sizes
  Expr storage_offset = 0;    // elements
  friend bool operator==(const TensorMeta&, const TensorMeta&) = default;

  int64_t rank() const { return static_cast<int64_t>(sizes.size()); }
};

Expr element_count(const TensorMeta& meta);
std::vector<Expr> contiguous_strides(const std::vector<Expr>& sizes);
std::vector<Expr> channels_last_strides(const std::vector<Expr>& sizes);  // rank 4 (NHWC) or 5 (NDHWC)
// With symbols that are neither 0 nor 1, if their ranges allow it, else 1: made in `copy`, or `meta` itself
// if all are numbers. Layouts are asked of it: their answers for large sizes are right for others, where
// strides count.
const TensorMeta& with_large_sizes(const TensorMeta& meta, TensorMeta& copy);
bool is_contiguous(const TensorMeta& meta);  // as Tensor.is_contiguous(): strides of size-1 dims are ignored
bool is_channels_last(const TensorMeta& meta);
// True if the elements fill a block of memory without overlap or holes, in some order of the dimensions.
bool is_non_overlapping_and_dense(const TensorMeta& meta);
// That order, innermost first, without dimensions of size 1. Nothing if there is none.
std::optional<std::vector<size_t>> dense_order(const TensorMeta& meta);
// Whether the elements of a view are known to lie between the first and the last of a tensor. Symbolic sizes
// of the tensor may be 0, which a layout with gaps does not tell from its last place. False where the tensor
// may be empty while the view is not.
bool lies_between(const TensorMeta& view, const TensorMeta& whole);
std::string str(const TensorMeta& meta);  // "float32[4, 8]", with strides unless contiguous

}  // namespace oxy
