// Messages of assertions that hold: nobody reads them, so that what they show is not guarded.
#pragma once

#include "eval/state/interpreter.h"

namespace oxy::eval {

// Whether text that the instruction under way would push goes, perhaps joined with other text, into the
// message of torch._assert(True, message) and nowhere else. `frame`: its operands have been popped.
bool is_message_of_true_assertion(const Frame& frame);

}  // namespace oxy::eval
