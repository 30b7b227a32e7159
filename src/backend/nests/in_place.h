// Lets a kernel write its result over an operand that nobody needs any more.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "backend/nests/loop_nest.h"
#include "backend/shared/normal_form.h"

namespace oxy::backend {

// Makes output arrays of the nest the same array as an input where every element is read before, and at the
// same place where, it is written. Returns the pairs (input, output) of buffers that now share memory.
// `dies(b)`: the nest is the last to use b; `is_new(b)`: the first.
std::vector<std::pair<BufferId, BufferId>> write_in_place(
    backend::LoopNest& nest, const std::function<bool(BufferId)>& dies,
    const std::function<bool(BufferId)>& is_new, const std::function<bool(BufferId, BufferId)>& same_size);

}  // namespace oxy::backend
