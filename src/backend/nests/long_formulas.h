// Formulas of sizes that a kernel is given the value of.
#pragma once

#include "backend/nests/loop_nest.h"

namespace oxy::backend {

// Replaces long quotients, remainders, minima and maxima of sizes alone by symbols of the nest. A launch
// calculates their values. With each division within a division, the time that a compiler takes for a kernel
// is several times as long. What a launch is told beside these values, as an extent, has to be over sizes:
// see with_formulas(). Precondition: the nest has been finished.
void name_long_formulas(LoopNest& nest);

// `e` with the formulas that the nest's symbols stand for.
Expr with_formulas(const LoopNest& nest, const Expr& e);

}  // namespace oxy::backend
