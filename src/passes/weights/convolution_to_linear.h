#pragma once

#include "graph/graph.h"

namespace oxy::passes {

// A convolution whose kernel is one element and whose input has one position, as in squeeze-and-excitation
// blocks and classifiers, is a matrix product: it becomes aten::addmm or aten::mm between views.
graph::Graph convolution_to_linear(const graph::Graph& source);

}  // namespace oxy::passes
