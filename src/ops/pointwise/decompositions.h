// Decompositions of element-wise operators.
#pragma once

#include "ops/core/composer.h"

namespace oxy::ops::decompositions {

std::vector<graph::ValueRef> threshold_backward(Composer& c);
std::vector<graph::ValueRef> leaky_relu_backward(Composer& c);  // of the input, not of the result
std::vector<graph::ValueRef> log_sigmoid_backward(Composer& c);
std::vector<graph::ValueRef> nan_to_num(
    Composer& c);  // of types with other limits than those that kernels compute with
std::vector<graph::ValueRef> is_positive_infinity(Composer& c);
std::vector<graph::ValueRef> is_negative_infinity(Composer& c);
std::vector<graph::ValueRef> ldexp(Composer& c);
std::vector<graph::ValueRef> dist(Composer& c);

}  // namespace oxy::ops::decompositions
