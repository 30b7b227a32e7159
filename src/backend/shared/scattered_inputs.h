// New contents of inputs that are the old ones but for a few elements: a cache with a row more.
#pragma once

#include "loop/program.h"

namespace oxy::backend {

// A scatter into a copy of an input, where the copy becomes the input's new contents, scatters into the input
// itself, and the copy goes. Only where nothing else reads the old contents, and elements are set, not added
// to: a call that fails afterwards is done again, and sets the same ones. For devices whose kernels report no
// index out of range: a run that ends in such a report has changed nothing.
void scatter_into_inputs(loop::Program& program);

}  // namespace oxy::backend
