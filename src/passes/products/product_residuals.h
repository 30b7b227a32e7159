#pragma once

#include <functional>

#include "graph/graph.h"

namespace oxy::passes {

// Whether the library of a device adds a matrix to a product of this type before it stores it. Without this
// function the pass does nothing.
using ProductAddsResidual = std::function<bool(DType dtype, Device device)>;

// A product, with a row as bias or without, and a sum that alone reads it, become oxyfuel::residual_product,
// if several nodes or outputs read the sum. Then the sum is likely to be in memory: the kernel that computes
// it would read the product and the other operand and write the sum, and now it reads the sum. A sum that
// only one kernel reads needs no memory, and gains nothing.
graph::Graph add_residuals_to_products(const graph::Graph& source, const ProductAddsResidual& adds);

}  // namespace oxy::passes
