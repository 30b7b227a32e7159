// What is decided of the outer loops of a group before its nest is built.
#pragma once

#include <optional>
#include <vector>

#include "backend/nests/loop_nest.h"
#include "backend/shared/fusion.h"

namespace oxy::backend {

// The group's one member, if it adds to computed places, with the loop outermost along which threads never
// meet: the loop runs through whole rows of what is added to.
std::optional<Item> independent_scatter(const IdVector<StepId, Item>& items, const Group& group, int lanes);

// Along which loops lanes run. `outer`: the loops that the group's members share.
VectorAxis choose_axis(const IdVector<StepId, Item>& items, const Group& group,
                       const std::vector<LoopVariable>& outer, int lanes);

}  // namespace oxy::backend
