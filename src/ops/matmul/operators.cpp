// The table of matrix products.
#include "ops/core/families.h"
#include "ops/matmul/decompositions.h"
#include "ops/matmul/lowerings.h"
#include "ops/matmul/shapes.h"

namespace oxy::ops {

Family matmul_operators() {
  static const OperatorEntry table[] = {
      {.name = "aten::mm",
       .schema = "aten::mm(Tensor self, Tensor mat2) -> Tensor",
       .shape = shapes::mm,
       .traits = {.fills_given_results = true, .mixes_elements = true}},
      {.name = "aten::_trilinear",
       .schema = "aten::_trilinear(Tensor i1, Tensor i2, Tensor i3, int[] expand1, int[] expand2, int[] "
                 "expand3, int[] sumdim, int unroll_dim=1) -> Tensor",
       .shape = shapes::trilinear,
       .traits = {.mixes_elements = true}},
      {.name = "oxyfuel::vector_product",  // of a row and of each row of a matrix
       .schema = "oxyfuel::vector_product(Tensor row, Tensor matrix) -> Tensor",
       .shape = shapes::vector_product,
       .lower = lowerings::vector_product},
      {.name = "aten::bmm",
       .schema = "aten::bmm(Tensor self, Tensor mat2) -> Tensor",
       .shape = shapes::bmm,
       .traits = {.fills_given_results = true, .mixes_elements = true}},
      {.name = "aten::addmm",
       .schema =
           "aten::addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
       .shape = shapes::addmm,
       .traits = {.fills_given_results = true, .mixes_elements = true}},
      {.name = "aten::_addmm_activation",
       .schema = "aten::_addmm_activation(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar "
                 "alpha=1, bool use_gelu=False) -> Tensor",
       .shape = shapes::addmm,
       .decompose = composed(decompositions::addmm_activation)},
      {.name = "aten::baddbmm",
       .schema = "aten::baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) "
                 "-> Tensor",
       .shape = shapes::baddbmm,
       .decompose = composed(decompositions::baddbmm),
       .traits = {.fills_given_results = true, .mixes_elements = true}},
      {.name = "aten::addbmm",
       .schema = "aten::addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) "
                 "-> Tensor",
       .shape = shapes::addbmm,
       .traits = {.mixes_elements = true}},
      {.name = "aten::mv",
       .schema = "aten::mv(Tensor self, Tensor vec) -> Tensor",
       .shape = shapes::mv,
       .traits = {.mixes_elements = true}},
      {.name = "aten::addmv",
       .schema =
           "aten::addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
       .shape = shapes::addmv,
       .traits = {.mixes_elements = true}},
      {.name = "aten::addr",
       .schema =
           "aten::addr(Tensor self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
       .shape = shapes::addr,
       .decompose = composed(decompositions::addr),
       .traits = {.mixes_elements = true}},
      {.name = "aten::linalg_cross",
       .schema = "aten::linalg_cross(Tensor self, Tensor other, *, int dim=-1) -> Tensor",
       .shape = shapes::linalg_cross,
       .decompose = composed(decompositions::linalg_cross),
       .traits = {.mixes_elements = true}},
      {.name = "aten::dot",
       .schema = "aten::dot(Tensor self, Tensor tensor) -> Tensor",
       .shape = shapes::dot,
       .traits = {.mixes_elements = true}},
      {.name = "aten::vdot",
       .schema = "aten::vdot(Tensor self, Tensor other) -> Tensor",
       .shape = shapes::dot},
      {.name = "aten::mm.dtype",
       .schema = "aten::mm.dtype(Tensor self, Tensor mat2, ScalarType out_dtype) -> Tensor",
       .shape = shapes::mm_to_type,
       .traits = {.fills_given_results = true, .mixes_elements = true}},
      {.name = "aten::bmm.dtype",
       .schema = "aten::bmm.dtype(Tensor self, Tensor mat2, ScalarType out_dtype) -> Tensor",
       .shape = shapes::bmm_to_type,
       .traits = {.mixes_elements = true}},
  };
  return table;
}

}  // namespace oxy::ops
