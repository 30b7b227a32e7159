// What buffers of a loop program take in memory.
#pragma once

#include "backend/shared/nest_expressions.h"
#include "loop/program.h"

namespace oxy::backend {

// The number of elements that a buffer spans in memory. Precondition: its layout is known.
inline Expr span_elements(const loop::Buffer& buffer) {
  Expr span = 1;
  for (size_t d = 0; d < buffer.sizes.size(); ++d) {
    if (buffer.sizes[d] == Expr(0)) return 0;
    span = span + (buffer.sizes[d] - 1) * (*buffer.strides)[d];
  }
  return span;
}

// The bytes of them, sizes that are not known guessed (estimate); 0 while the layout is open.
inline double estimated_bytes(const loop::Buffer& buffer) {
  if (!buffer.strides) return 0;
  return static_cast<double>(estimate(span_elements(buffer))) * static_cast<double>(item_size(buffer.dtype));
}

}  // namespace oxy::backend
