// Effects of a segment, done once it has run.
#pragma once

#include "eval/rebuild/capture.h"
#include "eval/rebuild/template.h"

namespace oxy::eval {

// Does to the real object what the captured region did to its shadow. False: a Python error is set, and the
// effect may have been done in part.
bool perform(const Effect& effect, Rebuilder& rebuilder);

}  // namespace oxy::eval
