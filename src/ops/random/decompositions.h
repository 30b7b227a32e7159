// Decompositions of random operators that draw nothing.
#pragma once

#include "ops/core/composer.h"

namespace oxy::ops::decompositions {

std::vector<graph::ValueRef> dropout(Composer& c);  // outside of training

}  // namespace oxy::ops::decompositions
