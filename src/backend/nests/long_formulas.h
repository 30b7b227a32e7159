// Formulas of sizes that a kernel is given the value of.
#pragma once

#include "backend/nests/loop_nest.h"

namespace oxy::backend {

// Replaces long quotients, remainders, minima and maxima of sizes alone by symbols of the nest, whose values
// a launch calculates. Compilers take time that grows with the power of the divisions within divisions. What
// a launch is told of the nest, as its extent, has to be over sizes: with_formulas() says it in these.
// Precondition: the nest has been finished.
void name_long_formulas(LoopNest& nest);

// `e` with the formulas that the nest's symbols stand for.
Expr with_formulas(const LoopNest& nest, const Expr& e);

}  // namespace oxy::backend
