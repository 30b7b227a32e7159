// Softmaxes in two steps, of which the backward pass repeats the cheap one.
#pragma once

#include "graph/graph.h"

namespace oxy::passes {

// A softmax, or its logarithm, becomes the maximum and the sum of each row (op::softmax_rows()) and a
// function of each element of these, where its operand is in memory and takes fewer bytes than the result
// would: it is widened from a narrower type, as the logits of a product in half precision are, or the caller
// gets it anyway. So a backward pass that reads the result can be given the operand and two numbers a row.
// `graph` computes a forward and a backward pass. Small results are left as they are, and so is what a kernel
// computes its operand of: the backward pass may compute that again, with other digits than those of the
// maximum.
graph::Graph separate_softmax_rows(const graph::Graph& graph);

}  // namespace oxy::passes
