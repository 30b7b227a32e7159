// Shape rules of losses.
#pragma once

#include "ops/core/shape_arguments.h"

namespace oxy::ops::shapes {

Metas nll_loss(const ShapeContext& context);  // (self, target, weight, reduction, ignore_index)
Metas nll_loss_2d(const ShapeContext& context);
Metas nll_loss_backward(const ShapeContext& context);  // (grad_output, self, ...)
Metas element_loss(const ShapeContext& context);       // (self, target, reduction, ...): mse, smooth_l1
Metas smooth_l1_loss(const ShapeContext& context);
Metas huber_loss(const ShapeContext& context);
Metas soft_margin_loss(const ShapeContext& context);
Metas weighted_element_loss(
    const ShapeContext& context);                // binary_cross_entropy(self, target, weight, reduction)
Metas logits_loss(const ShapeContext& context);  // binary_cross_entropy_with_logits(self, target, weight,
                                                 // pos_weight, reduction)
Metas cross_entropy_backward(const ShapeContext& context);  // of binary_cross_entropy
Metas element_loss_backward(const ShapeContext& context);   // (grad_output, self, target, ...)
Metas multi_margin_loss(const ShapeContext& context);
Metas multilabel_margin_loss(const ShapeContext& context);
Metas gradient_of_rows(const ShapeContext& context);

}  // namespace oxy::ops::shapes
