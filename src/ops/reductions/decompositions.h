// Decompositions of reductions.
#pragma once

#include "ops/core/composer.h"

namespace oxy::ops::decompositions {

std::vector<graph::ValueRef> nansum(Composer& c);
std::vector<graph::ValueRef> both_extrema(Composer& c);
std::vector<graph::ValueRef> count_nonzero(Composer& c);
std::vector<graph::ValueRef> norm(Composer& c);  // norm.* as linalg_vector_norm

}  // namespace oxy::ops::decompositions
