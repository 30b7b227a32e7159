// Decompositions of softmax and normalisation gradients.
#pragma once

#include "ops/core/composer.h"

namespace oxy::ops::decompositions {

std::vector<graph::ValueRef> softmax_backward(Composer& c);
std::vector<graph::ValueRef> log_softmax_backward(Composer& c);
std::vector<graph::ValueRef> layer_norm_backward(Composer& c);
std::vector<graph::ValueRef> rms_norm_backward(Composer& c);    // _fused_rms_norm_backward
std::vector<graph::ValueRef> group_norm_backward(Composer& c);  // native_group_norm_backward
// Training mode, statistics of the input's own type.
std::vector<graph::ValueRef> batch_norm_functional(Composer& c);
std::vector<graph::ValueRef> batch_norm_backward(Composer& c);

}  // namespace oxy::ops::decompositions
