// Memory formats of what a segment of a program hands on.
#pragma once

#include <vector>

#include "trace/session/session.h"

namespace oxy::trace {

// The rest of the program sees the strides of `results`, also those of dimensions of size 1, and derives
// formats from them. An image in channels-last with one channel or one pixel is in both formats, and eager's
// strides say which one it is taken for: no call of this recording has one unless that of now does.
void guard_formats(Session& session, const std::vector<at::Tensor>& results);

}  // namespace oxy::trace
