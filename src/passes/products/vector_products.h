#pragma once

#include <functional>

#include "graph/graph.h"

namespace oxy::passes {

// Whether the device computes products of a row and a matrix of this type as fast by generated kernels as its
// library does. Without this function the pass does nothing.
using GeneratesVectorProducts = std::function<bool(DType dtype)>;

// mm and addmm of one row and of a matrix whose columns lie side by side (the transposed weight of a linear
// layer) become oxyfuel::vector_product: a generated kernel, which reads the weight once and computes what
// follows as well.
graph::Graph generate_vector_products(const graph::Graph& source, const GeneratesVectorProducts& generates);

}  // namespace oxy::passes
