// Decompositions of losses.
#pragma once

#include "ops/core/composer.h"

namespace oxy::ops::decompositions {

std::vector<graph::ValueRef> smooth_l1_loss(Composer& c);
std::vector<graph::ValueRef> huber_loss(Composer& c);
std::vector<graph::ValueRef> binary_cross_entropy_with_logits(Composer& c);
std::vector<graph::ValueRef> soft_margin_loss(Composer& c);
std::vector<graph::ValueRef> mse_loss_backward(Composer& c);
std::vector<graph::ValueRef> nll_loss_backward(Composer& c);

}  // namespace oxy::ops::decompositions
