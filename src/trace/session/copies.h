// Copies that eager makes for some sizes only. reshape() and contiguous() give a view of their argument, or
// the argument itself, if its layout allows that, and a copy otherwise.
#pragma once

#include "trace/session/session.h"

namespace oxy::trace {

// PyTorch asks for the answer that sizes other than 0 and 1 have, which costs no guard. Where it was a copy,
// and somebody could tell it from a view, that no call makes it a view becomes a guard: something writes to
// one of the two, or both are seen outside. `end`: of the program's own operators. Precondition: the outputs
// are known.
void guard_copies(Session& session, graph::NodeId end);

}  // namespace oxy::trace
