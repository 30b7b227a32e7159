// How much of the value stack an instruction looks at.
#pragma once

#include <cstddef>
#include <optional>

#include "bytecode/instruction.h"

namespace oxy::bytecode {

// The number of entries on top of the stack that the instruction reads, moves or removes: those below stay as
// they are. Nothing if that is not known here: all of them, then.
std::optional<size_t> operand_count(const Instruction& instruction);

}  // namespace oxy::bytecode
