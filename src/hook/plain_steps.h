// Plain steps: instructions behind a break that concern only numbers, texts and loops over iterators. They
// are performed natively, too. A capture would have to guard their values, which often change (loops count).
#pragma once

#include <cstddef>

#include "bytecode/instruction.h"
#include "hook/native.h"

namespace oxy::hook {

// The number of instructions, from instruction `index` on, to be performed natively before the next segment.
// 0: a segment begins here. Their operands are plain scalars; but any object may be stored in a local or
// dropped, and any iterator may be advanced. They leave nothing new on the stack, except for the item of a
// loop. Only the last one may jump.
size_t count_plain_steps(const Machine& machine, const bytecode::Code& code, size_t index);

}  // namespace oxy::hook
