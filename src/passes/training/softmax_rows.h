// Softmaxes of half precision in two steps, of which the backward pass repeats the cheap one.
#pragma once

#include "graph/graph.h"

namespace oxy::passes {

// A softmax, or its logarithm, whose operand was widened from half precision becomes the maximum and the sum
// of each row (op::softmax_rows()) and a function of each element of these. So a backward pass that reads the
// result can be given the halves and two numbers a row, instead of a result of twice their bytes. `graph`
// computes a forward and a backward pass. Small results are left as they are.
graph::Graph separate_softmax_rows(const graph::Graph& graph);

}  // namespace oxy::passes
