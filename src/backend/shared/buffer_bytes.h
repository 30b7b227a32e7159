// What buffers of a loop program take in memory.
#pragma once

#include "backend/shared/nest_expressions.h"
#include "loop/program.h"

namespace oxy::backend {

// The number of elements that a buffer spans in memory. Precondition: its layout is known.
Expr span_elements(const loop::Buffer& buffer);
// The bytes of them, sizes that are not known guessed (estimate); 0 while the layout is open.
double estimated_bytes(const loop::Buffer& buffer);

}  // namespace oxy::backend
