#include "runtime/device/packing.h"

namespace oxy::runtime {

const OperatorSchema* packed_linear_schema() {
  static const OperatorSchema* schema = intern_schema(
      "oxyfuel::packed_linear(Tensor x, Tensor packed, Tensor? bias, str activation, Tensor? residual) -> "
      "Tensor");
  return schema;
}

const OperatorSchema* packed_convolution_schema() {
  static const OperatorSchema* schema = intern_schema(
      "oxyfuel::packed_convolution(Tensor x, Tensor packed_weight, Tensor? bias, SymInt[] stride, SymInt[] "
      "padding, "
      "SymInt[] dilation, int groups, str activation, Tensor? residual) -> Tensor");
  return schema;
}

}  // namespace oxy::runtime
