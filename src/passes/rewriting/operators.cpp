#include "passes/rewriting/operators.h"

namespace oxy::passes::op {

const OperatorSchema* view() {
  static const OperatorSchema* schema =
      intern_schema("aten::view(Tensor(a) self, SymInt[] size) -> Tensor(a)");
  return schema;
}

const OperatorSchema* permute() {
  static const OperatorSchema* schema =
      intern_schema("aten::permute(Tensor(a) self, int[] dims) -> Tensor(a)");
  return schema;
}

const OperatorSchema* slice() {
  static const OperatorSchema* schema = intern_schema(
      "aten::slice.Tensor(Tensor(a) self, int dim=0, SymInt? start=None, SymInt? end=None, "
      "SymInt step=1) -> Tensor(a)");
  return schema;
}

const OperatorSchema* select() {
  static const OperatorSchema* schema =
      intern_schema("aten::select.int(Tensor(a) self, int dim, SymInt index) -> Tensor(a)");
  return schema;
}

const OperatorSchema* as_strided() {
  static const OperatorSchema* schema = intern_schema(
      "aten::as_strided(Tensor(a) self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> "
      "Tensor(a)");
  return schema;
}

const OperatorSchema* index_put() {
  static const OperatorSchema* schema = intern_schema(
      "aten::index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor");
  return schema;
}

const OperatorSchema* clone() {
  static const OperatorSchema* schema =
      intern_schema("aten::clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor");
  return schema;
}

const OperatorSchema* to_copy() {
  static const OperatorSchema* schema = intern_schema(
      "aten::_to_copy(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? "
      "device=None, bool? pin_memory=None, bool non_blocking=False, MemoryFormat? "
      "memory_format=None) -> Tensor");
  return schema;
}

const OperatorSchema* add() {
  static const OperatorSchema* schema =
      intern_schema("aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor");
  return schema;
}

const OperatorSchema* sub() {
  static const OperatorSchema* schema =
      intern_schema("aten::sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor");
  return schema;
}

const OperatorSchema* mul() {
  static const OperatorSchema* schema =
      intern_schema("aten::mul.Tensor(Tensor self, Tensor other) -> Tensor");
  return schema;
}

const OperatorSchema* rsqrt() {
  static const OperatorSchema* schema = intern_schema("aten::rsqrt(Tensor self) -> Tensor");
  return schema;
}

const OperatorSchema* neg() {
  static const OperatorSchema* schema = intern_schema("aten::neg(Tensor self) -> Tensor");
  return schema;
}

const OperatorSchema* cat() {
  static const OperatorSchema* schema = intern_schema("aten::cat(Tensor[] tensors, int dim=0) -> Tensor");
  return schema;
}

const OperatorSchema* mm() {
  static const OperatorSchema* schema = intern_schema("aten::mm(Tensor self, Tensor mat2) -> Tensor");
  return schema;
}

const OperatorSchema* addmm() {
  static const OperatorSchema* schema = intern_schema(
      "aten::addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor");
  return schema;
}

const OperatorSchema* full() {
  static const OperatorSchema* schema = intern_schema(
      "aten::full(SymInt[] size, Scalar fill_value, *, ScalarType? dtype=None, Layout? "
      "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor");
  return schema;
}

const OperatorSchema* pack_linear() {
  static const OperatorSchema* schema =
      intern_schema("oxyfuel::pack_linear(Tensor weight, SymInt rows) -> Tensor");
  return schema;
}

const OperatorSchema* packed_linear() {
  static const OperatorSchema* schema = intern_schema(
      "oxyfuel::packed_linear(Tensor x, Tensor packed, Tensor? bias, str activation, "
      "Tensor? residual) -> Tensor");
  return schema;
}

const OperatorSchema* pack_convolution() {
  static const OperatorSchema* schema = intern_schema(
      "oxyfuel::pack_convolution(Tensor weight, SymInt[] input_size, SymInt[] stride, "
      "SymInt[] padding, SymInt[] dilation, int groups) -> Tensor");
  return schema;
}

const OperatorSchema* packed_convolution() {
  static const OperatorSchema* schema = intern_schema(
      "oxyfuel::packed_convolution(Tensor x, Tensor packed_weight, Tensor? bias, SymInt[] "
      "stride, SymInt[] padding, SymInt[] dilation, int groups, str activation, Tensor? "
      "residual) -> Tensor");
  return schema;
}

}  // namespace oxy::passes::op
