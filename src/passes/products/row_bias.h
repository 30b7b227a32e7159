// What libraries' products take as a bias.
#pragma once

#include "passes/rewriting/rewrite.h"

namespace oxy::passes {

// Whether an addmm adds a contiguous row of the product's type and length, and scales nothing.
inline bool has_row_as_bias(const Graph& graph, const Node& addmm) {
  const TensorMeta &bias = graph.meta(tensor_argument(addmm, 0)),
                   &product = graph.meta(addmm.outputs.front());
  return bias.rank() == 1 && is_contiguous(bias) && bias.dtype == product.dtype &&
         bias.sizes.front() == product.sizes.back() && number_argument(addmm, 3) == 1.0 &&
         number_argument(addmm, 4) == 1.0;
}

}  // namespace oxy::passes
