// Performs effects: changes external objects as the region has changed their shadows.
#pragma once

#include "eval/rebuild/capture.h"
#include "eval/rebuild/template.h"

namespace oxy::eval {

// False: a Python error is set, and the effect may have been performed in part. Containers are changed by the
// methods of their builtin class, whatever methods a subclass has.
bool perform(const Effect& effect, Rebuilder& rebuilder);

}  // namespace oxy::eval
