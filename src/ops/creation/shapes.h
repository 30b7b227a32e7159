// Shape rules of operators that make or copy tensors.
#pragma once

#include "ops/core/shape_arguments.h"

namespace oxy::ops::shapes {

// The positions of dtype, device and memory_format are found by name in the schema.
Metas filled(const ShapeContext& context);  // zeros, ones, empty, rand: (size, ...)
Metas full(const ShapeContext& context);    // (size, fill_value, ...): the type of the value unless given
Metas like(const ShapeContext& context);    // zeros_like, full_like, rand_like: (self, ...)
Metas filled_like_type(const ShapeContext& context);  // new_zeros, new_full: (self, size, ...)
Metas empty_strided(const ShapeContext& context);     // (size, stride, ...)
Metas new_empty_strided(const ShapeContext& context);
Metas empty_permuted(const ShapeContext& context);  // (size, physical_layout, ...)
Metas arange(const ShapeContext& context);          // (end), (start, end) or (start, end, step)
Metas linspace(const ShapeContext& context);        // (start, end, steps, ...)
Metas scalar_tensor(const ShapeContext& context);
Metas eye(const ShapeContext& context);               // (n) or (n, m)
Metas triangle_indices(const ShapeContext& context);  // (row, col, offset, ...)
Metas clone(const ShapeContext& context);             // (self, *, memory_format)
Metas copy(const ShapeContext& context);      // (self, src, non_blocking): src in self's type and layout
Metas triangle(const ShapeContext& context);  // tril, triu: contiguous, of self's type
Metas fill(const ShapeContext& context);      // (self, value): self, copied
Metas complex_of_parts(const ShapeContext& context);  // complex, polar

Metas window(const ShapeContext& context);  // hann_window and kin: (window_length, ...)

}  // namespace oxy::ops::shapes
