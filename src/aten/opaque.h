// The libraries that operators belong to.
#pragma once

#include "aten/schema.h"

namespace oxy {

// Nothing is known of such an operator but its schema: it is called at every run, once and in the order of
// the program.
bool is_opaque(const OperatorSchema& op);

// An operator of PyTorch's core: its schema tells all that it does.
bool is_of_core(const OperatorSchema& op);

// An operator that passes or the recorder put into graphs, and that PyTorch does not have.
bool is_our_own(const OperatorSchema& op);

}  // namespace oxy
