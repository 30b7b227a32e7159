// The table of normalisations and softmax.
#include "ops/core/families.h"
#include "ops/normalization/decompositions.h"
#include "ops/normalization/lowerings.h"
#include "ops/normalization/shapes.h"

namespace oxy::ops {

Family normalization_operators() {
  static const OperatorEntry table[] = {
      {.name = "aten::native_layer_norm",
       .schema = "aten::native_layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight, Tensor? "
                 "bias, float eps) -> (Tensor, Tensor, Tensor)",
       .shape = shapes::layer_norm,
       .lower = lowerings::layer_norm},
      {.name = "aten::native_layer_norm_backward",
       .schema = "aten::native_layer_norm_backward(Tensor grad_out, Tensor input, SymInt[] normalized_shape, "
                 "Tensor mean, Tensor rstd, Tensor? weight, Tensor? bias, bool[3] output_mask) -> (Tensor, "
                 "Tensor, Tensor)",
       .shape = shapes::layer_norm_backward,
       .decompose = composed(decompositions::layer_norm_backward),
       .has_result = output_mask,
       .traits = {.statistics_of = 1}},
      {.name = "aten::_fused_rms_norm",
       .schema = "aten::_fused_rms_norm(Tensor input, int[] normalized_shape, Tensor? weight, float? eps) -> "
                 "(Tensor, Tensor)",
       .shape = shapes::rms_norm,
       .lower = lowerings::rms_norm},
      {.name = "aten::_fused_rms_norm_backward",
       .schema = "aten::_fused_rms_norm_backward(Tensor grad_out, Tensor input, int[] normalized_shape, "
                 "Tensor rstd, Tensor? weight, bool[2] output_mask) -> (Tensor, Tensor)",
       .shape = shapes::rms_norm_backward,
       .decompose = composed(decompositions::rms_norm_backward),
       .has_result = output_mask,
       .traits = {.statistics_of = 1}},
      {.name = "aten::native_batch_norm",
       .schema = "aten::native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, "
                 "Tensor? running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
       .shape = shapes::batch_norm,
       .lower = lowerings::batch_norm,
       .traits = {.declared_as = "aten::_native_batch_norm_legit"}},
      {.name = "aten::_native_batch_norm_legit",
       .schema = "aten::_native_batch_norm_legit(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!) "
                 "running_mean, Tensor(b!) running_var, bool training, float momentum, float eps) -> "
                 "(Tensor, Tensor, Tensor)",
       .shape = shapes::batch_norm,
       .functional = "aten::_native_batch_norm_legit_functional",
       .traits = {.writes_unseen = true}},
      {.name = "aten::_native_batch_norm_legit.no_stats",
       .schema = "aten::_native_batch_norm_legit.no_stats(Tensor input, Tensor? weight, Tensor? bias, bool "
                 "training, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
       .shape = shapes::batch_norm_without_statistics,
       .traits = {.layouts = Layouts::Any}},
      {.name = "aten::_native_batch_norm_legit_no_training",
       .schema =
           "aten::_native_batch_norm_legit_no_training(Tensor input, Tensor? weight, Tensor? bias, Tensor "
           "running_mean, Tensor running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
       .shape = shapes::batch_norm_inference,
       .lower = lowerings::batch_norm_no_training},
      {.name = "aten::_native_batch_norm_legit_functional",
       .schema = "aten::_native_batch_norm_legit_functional(Tensor input, Tensor? weight, Tensor? bias, "
                 "Tensor running_mean, Tensor running_var, bool training, float momentum, float eps) -> "
                 "(Tensor, Tensor, Tensor, Tensor running_mean_out, Tensor running_var_out)",
       .shape = shapes::batch_norm_functional,
       .decompose = composed(decompositions::batch_norm_functional)},
      {.name = "aten::_batch_norm_with_update",
       .schema = "aten::_batch_norm_with_update(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!) "
                 "running_mean, Tensor(b!) running_var, float momentum, float eps) -> (Tensor, Tensor, "
                 "Tensor, Tensor)",
       .shape = shapes::batch_norm_with_update,
       .functional = "aten::_batch_norm_with_update_functional",
       .traits = {.writes_unseen = true}},
      {.name = "aten::_batch_norm_with_update_functional",
       .schema =
           "aten::_batch_norm_with_update_functional(Tensor input, Tensor? weight, Tensor? bias, Tensor "
           "running_mean, Tensor running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor, "
           "Tensor running_mean_out, Tensor running_var_out)",
       .shape = shapes::batch_norm_with_update_functional,
       .traits = {.layouts = Layouts::Any}},
      {.name = "aten::native_batch_norm_backward",
       .schema = "aten::native_batch_norm_backward(Tensor grad_out, Tensor input, Tensor? weight, Tensor? "
                 "running_mean, Tensor? running_var, Tensor? save_mean, Tensor? save_invstd, bool train, "
                 "float eps, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
       .shape = shapes::batch_norm_backward,
       .decompose = composed(decompositions::batch_norm_backward),
       .has_result = output_mask,
       .traits = {.statistics_of = 1}},
      {.name = "aten::native_group_norm",
       .schema = "aten::native_group_norm(Tensor input, Tensor? weight, Tensor? bias, SymInt N, SymInt C, "
                 "SymInt HxW, int group, float eps) -> (Tensor, Tensor, Tensor)",
       .shape = shapes::group_norm,
       .lower = lowerings::group_norm},
      {.name = "aten::native_group_norm_backward",
       .schema = "aten::native_group_norm_backward(Tensor grad_out, Tensor input, Tensor mean, Tensor rstd, "
                 "Tensor? weight, SymInt N, SymInt C, SymInt HxW, int group, bool[3] output_mask) -> "
                 "(Tensor, Tensor, Tensor)",
       .shape = shapes::group_norm_backward,
       .decompose = composed(decompositions::group_norm_backward),
       .has_result = output_mask,
       .traits = {.layouts = Layouts::Alike, .needs_first_result = true, .statistics_of = 1}},
      {.name = "aten::_softmax",
       .schema = "aten::_softmax(Tensor self, int dim, bool half_to_float) -> Tensor",
       .shape = shapes::softmax,
       .lower = lowerings::softmax,
       .traits = {.rows = Rows::Softmax}},
      {.name = "aten::_log_softmax",
       .schema = "aten::_log_softmax(Tensor self, int dim, bool half_to_float) -> Tensor",
       .shape = shapes::softmax,
       .lower = lowerings::log_softmax,
       .traits = {.rows = Rows::LogSoftmax}},
      {.name = "oxyfuel::softmax_rows",
       .schema = "oxyfuel::softmax_rows(Tensor self, int dim) -> (Tensor, Tensor)",
       .shape = shapes::softmax_rows,
       .lower = lowerings::softmax_rows},
      {.name = "aten::_safe_softmax",
       .schema = "aten::_safe_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
       .shape = shapes::safe_softmax,
       .lower = lowerings::safe_softmax},
      {.name = "aten::_softmax_backward_data",
       .schema = "aten::_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType "
                 "input_dtype) -> Tensor",
       .shape = shapes::softmax_backward,
       .decompose = composed(decompositions::softmax_backward)},
      {.name = "aten::_log_softmax_backward_data",
       .schema = "aten::_log_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType "
                 "input_dtype) -> Tensor",
       .shape = shapes::softmax_backward,
       .decompose = composed(decompositions::log_softmax_backward)},
      {.name = "aten::_weight_norm_interface",
       .schema = "aten::_weight_norm_interface(Tensor v, Tensor g, int dim=0) -> (Tensor, Tensor)",
       .shape = shapes::weight_norm},
  };
  return table;
}

}  // namespace oxy::ops
