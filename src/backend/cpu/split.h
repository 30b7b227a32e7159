// Gives a nest whose outer loops are too few more slices for threads to share.
#pragma once

#include "backend/nests/loop_nest.h"

namespace oxy::backend::cpu {

// `nest` has been finished; it stays so.
void split_for_threads(backend::LoopNest& nest, int threads);

}  // namespace oxy::backend::cpu
