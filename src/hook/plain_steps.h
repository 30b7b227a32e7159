// What follows a break and concerns only numbers, texts and loops over iterators.
//
// Its operands lie outside of the next segment: a capture would have to guard their values, and loops count.
#pragma once

#include <cstddef>

#include "bytecode/instruction.h"
#include "hook/native.h"

namespace oxy::hook {

// How many instructions, beginning with number `index`, are to be performed natively before the next segment.
// Their operands are plain scalars, except that anything may be stored in a local or dropped, and that any
// iterator may be advanced. They leave nothing on the stack that was not there before, but for the item of a
// loop. Only the last of them may jump. 0: a segment begins here.
size_t count_plain_steps(const Machine& machine, const bytecode::Code& code, size_t index);

}  // namespace oxy::hook
