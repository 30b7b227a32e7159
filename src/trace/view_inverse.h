// The scatter form of each view: what a view's base becomes when the view is written.
#pragma once

#include <cstdint>

#include "graph/graph.h"

namespace oxy::trace {

// How a new value of a view's output makes a new value of its base.
enum class ViewInverse : uint8_t {
  None,      // not expressible
  Identity,  // the output is the base
  Scatter,   // an operator over (base, new output): any strides of the new output will do
  Reshape,   // an operator over the new output alone, which must have the strides of the old one
};
ViewInverse view_inverse(const graph::Graph& graph, const graph::Node& view);

// Appends the nodes that compute the base's new value from its old one, `base`, and `written`, the new value
// of output number `output` of `view`. `view` and `recorded_base` belong to `recorded`; `base` and `written`
// are values of `graph`, with the sizes and element types that the recorded values have. The result has the
// metadata `result`. InternalError if view_inverse() is None.
graph::ValueId write_through(graph::Graph& graph, const graph::Graph& recorded, const graph::Node& view,
                             size_t output, graph::ValueId recorded_base, graph::ValueId base,
                             graph::ValueId written, TensorMeta result);

// Tells whether two elements of such a tensor may share memory.
bool may_overlap(const TensorMeta& meta);
// Tells whether two tensors on one storage may have an element in common.
bool may_share_elements(const TensorMeta& a, const TensorMeta& b);

}  // namespace oxy::trace
