// The table of losses.
#include "ops/core/families.h"
#include "ops/loss/decompositions.h"
#include "ops/loss/lowerings.h"
#include "ops/loss/shapes.h"

namespace oxy::ops {

Family loss_operators() {
  static const OperatorEntry table[] = {
      {.name = "aten::nll_loss_forward",
       .schema = "aten::nll_loss_forward(Tensor self, Tensor target, Tensor? weight, int reduction, SymInt "
                 "ignore_index) -> (Tensor output, Tensor total_weight)",
       .shape = shapes::nll_loss,
       .lower = lowerings::nll_loss,
       .raises = Raises::OnIntegers,
       .indices = Indices::Classes},
      {.name = "aten::nll_loss2d_forward",
       .schema = "aten::nll_loss2d_forward(Tensor self, Tensor target, Tensor? weight, int reduction, SymInt "
                 "ignore_index) -> (Tensor output, Tensor total_weight)",
       .shape = shapes::nll_loss_2d,
       .raises = Raises::OnIntegers,
       .indices = Indices::Classes},
      {.name = "aten::nll_loss_backward",
       .schema = "aten::nll_loss_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight, "
                 "int reduction, SymInt ignore_index, Tensor total_weight) -> Tensor",
       .shape = shapes::nll_loss_backward,
       .decompose = composed(decompositions::nll_loss_backward)},
      {.name = "aten::nll_loss2d_backward",
       .schema = "aten::nll_loss2d_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight, "
                 "int reduction, SymInt ignore_index, Tensor total_weight) -> Tensor",
       .shape = shapes::nll_loss_backward},
      {.name = "aten::mse_loss",
       .schema = "aten::mse_loss(Tensor self, Tensor target, int reduction=1) -> Tensor",
       .shape = shapes::element_loss,
       .lower = lowerings::mse_loss},
      {.name = "aten::smooth_l1_loss",
       .schema = "aten::smooth_l1_loss(Tensor self, Tensor target, int reduction=1, float beta=1.) -> Tensor",
       .shape = shapes::smooth_l1_loss,
       .decompose = composed(decompositions::smooth_l1_loss)},
      {.name = "aten::huber_loss",
       .schema = "aten::huber_loss(Tensor self, Tensor target, int reduction=1, float delta=1.) -> Tensor",
       .shape = shapes::huber_loss,
       .decompose = composed(decompositions::huber_loss)},
      {.name = "aten::soft_margin_loss",
       .schema = "aten::soft_margin_loss(Tensor self, Tensor target, int reduction=1) -> Tensor",
       .shape = shapes::soft_margin_loss,
       .decompose = composed(decompositions::soft_margin_loss)},
      {.name = "aten::binary_cross_entropy",
       .schema = "aten::binary_cross_entropy(Tensor self, Tensor target, Tensor? weight=None, int "
                 "reduction=1) -> Tensor",
       // Eager's kernel refuses probabilities below 0 and above 1.
       .shape = shapes::weighted_element_loss,
       .raises = Raises::OnAnyElements},
      {.name = "aten::binary_cross_entropy_with_logits",
       .schema = "aten::binary_cross_entropy_with_logits(Tensor self, Tensor target, Tensor? weight=None, "
                 "Tensor? pos_weight=None, int reduction=1) -> Tensor",
       .shape = shapes::logits_loss,
       .decompose = composed(decompositions::binary_cross_entropy_with_logits)},
      {.name = "aten::mse_loss_backward",
       .schema =
           "aten::mse_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction) -> Tensor",
       .shape = shapes::element_loss_backward,
       .decompose = composed(decompositions::mse_loss_backward)},
      {.name = "aten::smooth_l1_loss_backward",
       .schema = "aten::smooth_l1_loss_backward(Tensor grad_output, Tensor self, Tensor target, int "
                 "reduction, float beta) -> Tensor",
       .shape = shapes::element_loss_backward},
      {.name = "aten::huber_loss_backward",
       .schema = "aten::huber_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction, "
                 "float delta) -> Tensor",
       .shape = shapes::element_loss_backward},
      {.name = "aten::binary_cross_entropy_backward",
       .schema = "aten::binary_cross_entropy_backward(Tensor grad_output, Tensor self, Tensor target, "
                 "Tensor? weight=None, int reduction=1) -> Tensor",
       .shape = shapes::cross_entropy_backward},
      {.name = "aten::multi_margin_loss",
       .schema = "aten::multi_margin_loss(Tensor self, Tensor target, Scalar p=1, Scalar margin=1, Tensor? "
                 "weight=None, int reduction=1) -> Tensor",
       .shape = shapes::multi_margin_loss,
       .raises = Raises::OnIntegers},
      {.name = "aten::multi_margin_loss_backward",
       .schema = "aten::multi_margin_loss_backward(Tensor grad_output, Tensor self, Tensor target, Scalar p, "
                 "Scalar margin, Tensor? weight=None, int reduction=1) -> Tensor",
       .shape = shapes::gradient_of_rows,
       .raises = Raises::OnIntegers},
      {.name = "aten::multilabel_margin_loss_forward",
       .schema = "aten::multilabel_margin_loss_forward(Tensor self, Tensor target, int reduction) -> (Tensor "
                 "output, Tensor is_target)",
       .shape = shapes::multilabel_margin_loss,
       .raises = Raises::OnIntegers},
      {.name = "aten::multilabel_margin_loss_backward",
       .schema = "aten::multilabel_margin_loss_backward(Tensor grad_output, Tensor self, Tensor target, int "
                 "reduction, Tensor is_target) -> Tensor",
       .shape = shapes::gradient_of_rows,
       .raises = Raises::OnIntegers},
  };
  return table;
}

}  // namespace oxy::ops
