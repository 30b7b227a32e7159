// How eager lays out and types the result of an element-wise operator: the one place that knows.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "ops/core/shape_arguments.h"

namespace oxy::ops {

// The result type of operands in PyTorch's three ranks: tensors with dimensions, 0-dim tensors, plain
// numbers. A lower rank decides only if its category (bool < integer < floating < complex) is above that of
// the higher ranks.
class Promotion {
 public:
  explicit Promotion(DType default_dtype) : default_dtype_(default_dtype) {}
  void add_tensor(const TensorMeta& meta);
  void add_number(const graph::Argument& number);  // bool, Expr, double or complex
  DType result() const;                            // InternalError if nothing was added

 private:
  DType default_dtype_;
  std::optional<DType> ranks_[3];
};

// The shape that the operands' shapes broadcast to. Unsupported if they do not.
std::vector<Expr> broadcast(const ShapeContext& context, std::span<const TensorMeta* const> operands);

// Sizes and strides of the fresh output of an element-wise operator over these operands (dtype and device of
// the result are left alone). A plain number is an operand of rank 0.
TensorMeta element_wise_layout(const ShapeContext& context, std::span<const TensorMeta* const> operands);

enum class ResultType : uint8_t {
  Promoted,         // the promoted type of the operands
  PromotedToFloat,  // the same, integers and bool become the default dtype
  Bool,             // operands are promoted among themselves, the result is Bool
};

// The whole rule for the operands at these argument positions (tensors, plain numbers or None).
TensorMeta element_wise(const ShapeContext& context, std::initializer_list<size_t> operands, ResultType type);
// The same with a layout that only the operand at `layout_of` decides; the others are numbers that only
// promote.
TensorMeta element_wise_like(const ShapeContext& context, size_t layout_of,
                             std::initializer_list<size_t> others, ResultType type);

TensorMeta contiguous_meta(DType dtype, Device device, std::vector<Expr> sizes);
// A new tensor of the shape of `meta` in the memory order of `meta`, without gaps (torch.empty_like).
TensorMeta dense_like(const ShapeContext& context, const TensorMeta& meta, DType dtype);
// A copy with the very strides and storage offset, except that elements which lie upon each other are spread
// out.
TensorMeta strided_like(const ShapeContext& context, const TensorMeta& meta);
TensorMeta with_format(const ShapeContext& context, const TensorMeta& meta, DType dtype, MemoryFormat format);
// The device of an operator's result: that of the first operand with dimensions, else of the first that is
// not on the host, else the host.
Device common_device(std::span<const TensorMeta* const> operands);

}  // namespace oxy::ops
