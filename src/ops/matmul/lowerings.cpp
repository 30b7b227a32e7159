#include "ops/matmul/lowerings.h"

#include "ops/core/lowering_arguments.h"

namespace oxy::ops::lowerings {

void vector_product(LoweringContext& context, const Node& node) {
  const Tensor row = context.operand(node, 0), matrix = context.operand(node, 1);
  context.realise_unless_cheap(
      row);  // each row of the matrix reads it; an element of the matrix is read once
  const TensorMeta& out = context.output_meta(node);
  const Tensor sums =
      context.reduce(loop::ReductionKind::Sum, {row, matrix}, out.sizes, {row.sizes[1]},
                     compute_type(out.dtype), [&](BodyBuilder& b, const Index& kept, const Index& inner) {
                       return LoweringContext::element(b, row, {Expr(0), inner[0]}) *
                              LoweringContext::element(b, matrix, {kept[1], inner[0]});
                     })[0];
  context.set(node.outputs[0], context.cast(sums, out.dtype));
}

}  // namespace oxy::ops::lowerings
