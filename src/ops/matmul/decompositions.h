// Decompositions of matrix products.
#pragma once

#include "ops/core/composer.h"

namespace oxy::ops::decompositions {

std::vector<graph::ValueRef> baddbmm(Composer& c);  // with beta = 0
std::vector<graph::ValueRef> addr(Composer& c);
std::vector<graph::ValueRef> linalg_cross(Composer& c);
std::vector<graph::ValueRef> addmm_activation(Composer& c);  // _addmm_activation

}  // namespace oxy::ops::decompositions
