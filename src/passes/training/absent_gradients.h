// A backward graph for passes in which some gradients do not come in.
#pragma once

#include <vector>

#include "graph/graph.h"

namespace oxy::passes {

// `backward` without what those inputs alone flow into that are `absent` (by input); they stay inputs,
// unread. A backward pass is linear in the gradients that come in, so all of that is zero; left in, it would
// be computed, and zero times infinity is not a number. `is_gradient`: by input, those that the graph is
// linear in.
graph::Graph without_gradients(const graph::Graph& backward, const std::vector<bool>& is_gradient,
                               const std::vector<bool>& absent);

}  // namespace oxy::passes
