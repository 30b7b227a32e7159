// Operators of libraries that are not torch's.
#pragma once

#include "aten/schema.h"

namespace oxy {

// Nothing is known of such an operator but its schema: it is called at every run, once and in the order of
// the program.
bool is_opaque(const OperatorSchema& op);

}  // namespace oxy
