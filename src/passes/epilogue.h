// Operators that a packed linear or convolution applies to its result before it is stored.
#pragma once

#include <functional>
#include <string>

#include "passes/rewrite.h"

namespace oxy::passes {

// What follows a linear or convolution and can be absorbed: `activation(result + residual)`.
struct Epilogue {
  std::string activation = "none";
  ValueId residual = graph::kNoValue;
  std::vector<int32_t> absorbed;  // the nodes, in order; the last one's output is the result
};

// Whether the kernel can apply this activation ("none", "relu", "gelu", "gelu_tanh", "silu", ...), after
// adding a tensor of the result's size and layout if there is a residual. Empty: nothing is absorbed.
using FusesEpilogue = std::function<bool(std::string_view activation, bool with_residual)>;

// The name that packed operators know an activation node by; empty if it is none.
std::string activation_name(const Node& node);

// Follows the only reader of `value` as long as it can be absorbed. `through_views`: views of the whole
// tensor in between are absorbed too. A residual is the other operand of an addition, of equal type and
// sizes.
Epilogue match_epilogue(const Graph& graph, ValueId value, const std::vector<int32_t>& only_readers,
                        bool through_views, const FusesEpilogue& fuses);

}  // namespace oxy::passes
