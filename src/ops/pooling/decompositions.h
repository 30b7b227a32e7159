// Pooling as operators of our own.
#pragma once

#include <vector>

#include "ops/core/composer.h"

namespace oxy::ops::decompositions {

std::vector<graph::ValueRef> max_pool2d(Composer& c);
// Where the region computes the indices, and the window has no holes.
std::vector<graph::ValueRef> max_pool2d_backward(Composer& c);

}  // namespace oxy::ops::decompositions
