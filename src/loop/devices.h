// Where the work of a program is done.
#pragma once

#include "loop/program.h"

namespace oxy::loop {

// That of the memory which the computation writes to, or reads if it writes to none. The host if there is
// neither.
Device device_of(const Program& program, const Computation& computation);

// The device of the first buffer that is not on the host; the host if there is none.
Device main_device(const Program& program);

}  // namespace oxy::loop
