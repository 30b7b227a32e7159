// The shapes of kernels with rows: along them, down columns, in steps, in turn.
#pragma once

#include "backend/cuda/launch_shape.h"

namespace oxy::backend::cuda {

// The shape (Form::Rows) of a nest with reductions or loops inside.
LaunchShape row_shape(const LoopNest& nest);

}  // namespace oxy::backend::cuda
