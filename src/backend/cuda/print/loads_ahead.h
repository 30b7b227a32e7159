// Loads of a phase without columns that wait for no other phase: a program begins them before it reduces its
// row, so that they are done when the row is.
#pragma once

#include <vector>

#include "backend/nests/loop_nest.h"

namespace oxy::backend::cuda {

// By instruction of the phase, whether it is such a load, or what one is computed from. A load is one if the
// kernel does not write its array, and its place and condition are known without what other phases make.
std::vector<bool> loads_ahead(const LoopNest& nest, const Phase& phase);

}  // namespace oxy::backend::cuda
