// Values of the forward pass whose readers must see what is saved of them.
#pragma once

#include "graph/graph.h"

namespace oxy::passes {

// Of each input of a backward graph, whether an operand of a norm is computed again from it, and it is of a
// floating point type that kernels compute in a wider one. The norm's mean is of what the forward pass
// computed. If that began with digits which memory does not hold, the operand less its mean is mostly the
// difference between the two.
IdVector<graph::ValueId, bool> rounded_values(const graph::Graph& backward);

}  // namespace oxy::passes
