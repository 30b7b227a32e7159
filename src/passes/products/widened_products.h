#pragma once

#include <functional>

#include "graph/graph.h"

namespace oxy::passes {

// Whether the library stores a product of operands of this type as float32, as it has computed it. Without
// this function the pass does nothing.
using WidensProducts = std::function<bool(DType dtype)>;

// Where a result of the graph is an mm, or a view of all its elements, that was converted to float32 and that
// nothing else reads, the product becomes aten::mm.dtype: the gradient of a weight under autocast is not
// stored twice, nor rounded on the way. What the graph goes on with is rounded as in eager.
graph::Graph widen_products(const graph::Graph& source, const WidensProducts& widens);

}  // namespace oxy::passes
