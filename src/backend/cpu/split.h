// What threads share of a nest: slices of its outer loops.
#pragma once

#include "backend/nests/loop_nest.h"

namespace oxy::backend::cpu {

// One thread runs a nest in which slices might write to one place, where the order of such writes matters
// (ElementStore::in_order). For a nest that is neither tiled nor split yet.
void keep_order(backend::LoopNest& nest);

// Gives a nest whose outer loops are too few more slices. `nest` has been finished; it stays so.
void split_for_threads(backend::LoopNest& nest, int threads);

}  // namespace oxy::backend::cpu
