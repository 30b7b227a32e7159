// Gives a nest whose outer loops are too few more slices for threads to share.
#pragma once

#include "codegen/loop_nest.h"

namespace oxy::sched {

// `nest` has been finished; it stays so.
void split_for_threads(codegen::LoopNest& nest, int threads);

}  // namespace oxy::sched
