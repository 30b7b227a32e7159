// Which new contents of inputs kernels write straight over the old ones, without a copy at the end.
#pragma once

#include <unordered_map>
#include <vector>

#include "backend/shared/dependencies.h"
#include "backend/shared/fusion.h"

namespace oxy::backend {

struct DirectWrites {
  std::unordered_map<BufferId, BufferId> input_of;  // by the buffer that holds an input's new contents
  GroupId first_group;                              // the groups from here on may write over inputs
};

// The buffer of each input, by its number.
std::unordered_map<int32_t, BufferId> buffers_of_inputs(const loop::Program& program);
// Whether the mutation's value is an intermediate that could be the input itself, as it lies in memory.
bool can_be_input(const loop::Program& program, const loop::ProgramMutation& mutation, BufferId input);

// A run that fails must have changed nothing: the groups that only make new contents are moved behind all
// others, which may fail. They cannot: none of them is an extern call or checks an index. Whether an old
// value is still needed when the new one is written is left to the caller.
DirectWrites find_direct_writes(const loop::Program& program, const Dependencies& dependencies,
                                IdVector<GroupId, Group>& groups);

}  // namespace oxy::backend
