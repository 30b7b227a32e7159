#pragma once

#include <functional>
#include <string_view>

#include "graph/graph.h"

namespace oxy::passes {

// Whether the library's product of this type applies the activation ("relu", "gelu_tanh") to its result
// before it stores it. Without this function the pass does nothing.
using ProductAppliesActivation = std::function<bool(std::string_view activation, DType dtype)>;

// An addmm of a row as bias, and a relu or gelu(approximate="tanh") that alone reads it, become
// aten::_addmm_activation: what the product stores is not read and written once more.
graph::Graph apply_product_activations(const graph::Graph& source, const ProductAppliesActivation& applies);

}  // namespace oxy::passes
