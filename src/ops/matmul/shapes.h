// Shape rules of matrix products.
#pragma once

#include "ops/core/shape_arguments.h"

namespace oxy::ops::shapes {

Metas mm(const ShapeContext& context);
Metas vector_product(const ShapeContext& context);  // (row [1, inner], matrix [rows, inner]) -> [1, rows]
Metas bmm(const ShapeContext& context);
Metas addmm(const ShapeContext& context);    // (self, mat1, mat2, ...)
Metas baddbmm(const ShapeContext& context);  // (self, batch1, batch2, ...)
Metas addbmm(const ShapeContext& context);
Metas mv(const ShapeContext& context);
Metas addmv(const ShapeContext& context);
Metas addr(const ShapeContext& context);
Metas dot(const ShapeContext& context);
Metas linalg_cross(const ShapeContext& context);  // (self, other, *, dim)

// _trilinear(i1, i2, i3, expand1, expand2, expand3, sumdim, unroll_dim): the product of three tensors, which
// get dimensions of one element where the lists say, summed over `sumdim`.
Metas trilinear(const ShapeContext& context);

// The overloads of mm, bmm, addmm and baddbmm that name the type of the result.
Metas mm_to_type(const ShapeContext& context);
Metas bmm_to_type(const ShapeContext& context);

}  // namespace oxy::ops::shapes
