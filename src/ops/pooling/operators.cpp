// The table of pooling and resampling.
#include "ops/core/families.h"
#include "ops/pooling/decompositions.h"
#include "ops/pooling/lowerings.h"
#include "ops/pooling/shapes.h"

namespace oxy::ops {

Family pooling_operators() {
  static const OperatorEntry table[] = {
      {.name = "aten::max_pool2d_with_indices",
       .schema = "aten::max_pool2d_with_indices(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] "
                 "padding=0, int[2] dilation=1, bool ceil_mode=False) -> (Tensor, Tensor)",
       .shape = shapes::max_pool,
       .decompose = composed(decompositions::max_pool2d)},
      // The second result has the place of each maximum in its window, by rows.
      {.name = "oxyfuel::max_pool2d_places",
       .schema = "oxyfuel::max_pool2d_places(Tensor self, int[] kernel_size, int[] stride, int[] padding, "
                 "int[] dilation, bool ceil_mode) -> (Tensor, Tensor)",
       .shape = shapes::max_pool_places,
       .lower = lowerings::max_pool2d_places},
      {.name = "oxyfuel::max_pool2d_indices",
       .schema = "oxyfuel::max_pool2d_indices(Tensor places, SymInt width, int[] kernel_size, int[] stride, "
                 "int[] padding, int[] dilation) -> Tensor",
       .shape = shapes::max_pool_indices,
       .lower = lowerings::max_pool2d_indices},
      {.name = "oxyfuel::max_pool2d_gradient",
       .schema = "oxyfuel::max_pool2d_gradient(Tensor grad_output, Tensor places, SymInt[] sizes, int[] "
                 "kernel_size, int[] stride, int[] padding, MemoryFormat memory_format) -> Tensor",
       .shape = shapes::max_pool_gradient,
       .lower = lowerings::max_pool2d_gradient},
      {.name = "aten::max_pool3d_with_indices",
       .schema = "aten::max_pool3d_with_indices(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] "
                 "padding=0, int[3] dilation=1, bool ceil_mode=False) -> (Tensor, Tensor)",
       .shape = shapes::max_pool,
       .traits = {.layouts = Layouts::Any}},
      {.name = "aten::avg_pool2d",
       .schema = "aten::avg_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, bool "
                 "ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor",
       .shape = shapes::average_pool,
       .lower = lowerings::avg_pool2d},
      {.name = "aten::avg_pool3d",
       .schema = "aten::avg_pool3d(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, bool "
                 "ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor",
       .shape = shapes::average_pool,
       .traits = {.layouts = Layouts::Any}},
      {.name = "aten::_adaptive_avg_pool2d",
       .schema = "aten::_adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor",
       .shape = shapes::adaptive_average_pool,
       .lower = lowerings::adaptive_avg_pool2d},
      {.name = "aten::_adaptive_avg_pool3d",
       .schema = "aten::_adaptive_avg_pool3d(Tensor self, SymInt[3] output_size) -> Tensor",
       .shape = shapes::adaptive_average_pool,
       .traits = {.layouts = Layouts::Any}},
      {.name = "aten::adaptive_max_pool2d",
       .schema = "aten::adaptive_max_pool2d(Tensor self, int[2] output_size) -> (Tensor, Tensor)",
       .shape = shapes::adaptive_max_pool,
       .traits = {.layouts = Layouts::Any}},
      {.name = "aten::adaptive_max_pool3d",
       .schema = "aten::adaptive_max_pool3d(Tensor self, int[3] output_size) -> (Tensor, Tensor)",
       .shape = shapes::adaptive_max_pool,
       .traits = {.layouts = Layouts::Any}},
      {.name = "aten::upsample_nearest1d",
       .schema = "aten::upsample_nearest1d(Tensor self, SymInt[1] output_size, float? scales=None) -> Tensor",
       .shape = shapes::upsample,
       .traits = {.layouts = Layouts::Any}},
      {.name = "aten::upsample_nearest2d",
       .schema = "aten::upsample_nearest2d(Tensor self, SymInt[2] output_size, float? scales_h=None, float? "
                 "scales_w=None) -> Tensor",
       .shape = shapes::upsample,
       .lower = lowerings::upsample_nearest2d},
      {.name = "aten::upsample_nearest3d",
       .schema = "aten::upsample_nearest3d(Tensor self, SymInt[3] output_size, float? scales_d=None, float? "
                 "scales_h=None, float? scales_w=None) -> Tensor",
       .shape = shapes::upsample,
       .traits = {.layouts = Layouts::Any}},
      {.name = "aten::_upsample_nearest_exact1d",
       .schema = "aten::_upsample_nearest_exact1d(Tensor self, SymInt[1] output_size, float? scales=None) -> "
                 "Tensor",
       .shape = shapes::upsample,
       .traits = {.layouts = Layouts::Any}},
      {.name = "aten::_upsample_nearest_exact2d",
       .schema = "aten::_upsample_nearest_exact2d(Tensor self, SymInt[2] output_size, float? scales_h=None, "
                 "float? scales_w=None) -> Tensor",
       .shape = shapes::upsample,
       .traits = {.layouts = Layouts::Any}},
      {.name = "aten::_upsample_nearest_exact3d",
       .schema = "aten::_upsample_nearest_exact3d(Tensor self, SymInt[3] output_size, float? scales_d=None, "
                 "float? scales_h=None, float? scales_w=None) -> Tensor",
       .shape = shapes::upsample,
       .traits = {.layouts = Layouts::Any}},
      {.name = "aten::upsample_linear1d",
       .schema = "aten::upsample_linear1d(Tensor self, SymInt[1] output_size, bool align_corners, float? "
                 "scales=None) -> Tensor",
       .shape = shapes::upsample,
       .traits = {.layouts = Layouts::Any}},
      {.name = "aten::upsample_bilinear2d",
       .schema = "aten::upsample_bilinear2d(Tensor self, SymInt[2] output_size, bool align_corners, float? "
                 "scales_h=None, float? scales_w=None) -> Tensor",
       .shape = shapes::upsample,
       .traits = {.layouts = Layouts::Any}},
      {.name = "aten::upsample_bicubic2d",
       .schema = "aten::upsample_bicubic2d(Tensor self, SymInt[2] output_size, bool align_corners, float? "
                 "scales_h=None, float? scales_w=None) -> Tensor",
       .shape = shapes::upsample,
       .traits = {.layouts = Layouts::Any}},
      {.name = "aten::upsample_trilinear3d",
       .schema = "aten::upsample_trilinear3d(Tensor self, SymInt[3] output_size, bool align_corners, float? "
                 "scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor",
       .shape = shapes::upsample,
       .traits = {.layouts = Layouts::Any}},
      {.name = "aten::_upsample_bilinear2d_aa",
       .schema = "aten::_upsample_bilinear2d_aa(Tensor self, SymInt[2] output_size, bool align_corners, "
                 "float? scales_h=None, float? scales_w=None) -> Tensor",
       .shape = shapes::upsample,
       .traits = {.layouts = Layouts::Any}},
      {.name = "aten::_upsample_bicubic2d_aa",
       .schema = "aten::_upsample_bicubic2d_aa(Tensor self, SymInt[2] output_size, bool align_corners, "
                 "float? scales_h=None, float? scales_w=None) -> Tensor",
       .shape = shapes::upsample,
       .traits = {.layouts = Layouts::Any}},
      {.name = "aten::max_pool2d_with_indices_backward",
       .schema =
           "aten::max_pool2d_with_indices_backward(Tensor grad_output, Tensor self, int[2] kernel_size, "
           "int[2] stride, int[2] padding, int[2] dilation, bool ceil_mode, Tensor indices) -> Tensor",
       .shape = shapes::pool_backward,
       .decompose = composed(decompositions::max_pool2d_backward)},
      {.name = "aten::avg_pool2d_backward",
       .schema =
           "aten::avg_pool2d_backward(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] stride, "
           "int[2] padding, bool ceil_mode, bool count_include_pad, int? divisor_override) -> Tensor",
       .shape = shapes::pool_backward,
       .traits = {.layouts = Layouts::Any}},
      {.name = "aten::_adaptive_avg_pool2d_backward",
       .schema = "aten::_adaptive_avg_pool2d_backward(Tensor grad_output, Tensor self) -> Tensor",
       .shape = shapes::adaptive_pool_backward,
       .traits = {.layouts = Layouts::Any}},
      {.name = "aten::upsample_nearest2d_backward",
       .schema = "aten::upsample_nearest2d_backward(Tensor grad_output, SymInt[2] output_size, SymInt[4] "
                 "input_size, float? scales_h=None, float? scales_w=None) -> Tensor",
       .shape = shapes::upsample_backward,
       .traits = {.layouts = Layouts::Any}},
      {.name = "aten::upsample_bilinear2d_backward",
       .schema = "aten::upsample_bilinear2d_backward(Tensor grad_output, SymInt[2] output_size, SymInt[4] "
                 "input_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor",
       .shape = shapes::upsample_backward,
       .traits = {.layouts = Layouts::Any}},
      {.name = "aten::upsample_bicubic2d_backward",
       .schema = "aten::upsample_bicubic2d_backward(Tensor grad_output, SymInt[2] output_size, SymInt[4] "
                 "input_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor",
       .shape = shapes::contiguous_upsample_backward,
       .traits = {.layouts = Layouts::Any}},
      {.name = "aten::affine_grid_generator",
       .schema = "aten::affine_grid_generator(Tensor theta, SymInt[] size, bool align_corners) -> Tensor",
       .shape = shapes::affine_grid,
       .traits = {.mixes_elements = true}},
      {.name = "aten::grid_sampler_2d",
       .schema = "aten::grid_sampler_2d(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, "
                 "bool align_corners) -> Tensor",
       .shape = shapes::grid_sample,
       .traits = {.layouts = Layouts::Any}},
      {.name = "aten::grid_sampler_3d",
       .schema = "aten::grid_sampler_3d(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, "
                 "bool align_corners) -> Tensor",
       .shape = shapes::grid_sample,
       .traits = {.layouts = Layouts::Any}},
      {.name = "aten::grid_sampler_2d_backward",
       .schema = "aten::grid_sampler_2d_backward(Tensor grad_output, Tensor input, Tensor grid, int "
                 "interpolation_mode, int padding_mode, bool align_corners, bool[2] output_mask) -> (Tensor, "
                 "Tensor)",
       .shape = shapes::grid_sample_backward,
       .has_result = output_mask,
       .traits = {.layouts = Layouts::Any}},
      {.name = "aten::grid_sampler_3d_backward",
       .schema = "aten::grid_sampler_3d_backward(Tensor grad_output, Tensor input, Tensor grid, int "
                 "interpolation_mode, int padding_mode, bool align_corners, bool[2] output_mask) -> (Tensor, "
                 "Tensor)",
       .shape = shapes::grid_sample_backward,
       .has_result = output_mask,
       .traits = {.layouts = Layouts::Any}},
      {.name = "aten::max_unpool2d",
       .schema = "aten::max_unpool2d(Tensor self, Tensor indices, SymInt[2] output_size) -> Tensor",
       .shape = shapes::max_unpool,
       .raises = Raises::OnIntegers},
      {.name = "aten::max_unpool3d",
       .schema = "aten::max_unpool3d(Tensor self, Tensor indices, SymInt[3] output_size, int[3] stride, "
                 "int[3] padding) -> Tensor",
       .shape = shapes::max_unpool,
       .raises = Raises::OnIntegers},
      {.name = "aten::avg_pool3d_backward",
       .schema =
           "aten::avg_pool3d_backward(Tensor grad_output, Tensor self, int[3] kernel_size, int[3] stride, "
           "int[3] padding, bool ceil_mode, bool count_include_pad, int? divisor_override) -> Tensor",
       .shape = shapes::volume_pool_backward},
      {.name = "aten::max_pool3d_with_indices_backward",
       .schema =
           "aten::max_pool3d_with_indices_backward(Tensor grad_output, Tensor self, int[3] kernel_size, "
           "int[3] stride, int[3] padding, int[3] dilation, bool ceil_mode, Tensor indices) -> Tensor",
       .shape = shapes::pool_backward},
      {.name = "aten::adaptive_max_pool2d_backward",
       .schema =
           "aten::adaptive_max_pool2d_backward(Tensor grad_output, Tensor self, Tensor indices) -> Tensor",
       .shape = shapes::pool_backward},
      {.name = "aten::adaptive_max_pool3d_backward",
       .schema =
           "aten::adaptive_max_pool3d_backward(Tensor grad_output, Tensor self, Tensor indices) -> Tensor",
       .shape = shapes::volume_pool_backward},
      {.name = "aten::_adaptive_avg_pool3d_backward",
       .schema = "aten::_adaptive_avg_pool3d_backward(Tensor grad_output, Tensor self) -> Tensor",
       .shape = shapes::volume_pool_backward},
      {.name = "aten::upsample_nearest1d_backward",
       .schema = "aten::upsample_nearest1d_backward(Tensor grad_output, SymInt[1] output_size, SymInt[3] "
                 "input_size, float? scales=None) -> Tensor",
       .shape = shapes::upsample_backward},
      {.name = "aten::upsample_nearest3d_backward",
       .schema = "aten::upsample_nearest3d_backward(Tensor grad_output, SymInt[3] output_size, SymInt[5] "
                 "input_size, float? scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor",
       .shape = shapes::contiguous_upsample_backward},
      {.name = "aten::_upsample_nearest_exact2d_backward",
       .schema = "aten::_upsample_nearest_exact2d_backward(Tensor grad_output, SymInt[2] output_size, "
                 "SymInt[4] input_size, float? scales_h=None, float? scales_w=None) -> Tensor",
       .shape = shapes::upsample_backward},
      {.name = "aten::_upsample_nearest_exact1d_backward",
       .schema = "aten::_upsample_nearest_exact1d_backward(Tensor grad_output, SymInt[1] output_size, "
                 "SymInt[3] input_size, float? scales=None) -> Tensor",
       .shape = shapes::upsample_backward},
      {.name = "aten::_upsample_nearest_exact3d_backward",
       .schema = "aten::_upsample_nearest_exact3d_backward(Tensor grad_output, SymInt[3] output_size, "
                 "SymInt[5] input_size, float? scales_d=None, float? scales_h=None, float? scales_w=None) "
                 "-> Tensor",
       .shape = shapes::contiguous_upsample_backward},
      {.name = "aten::_upsample_bilinear2d_aa_backward",
       .schema = "aten::_upsample_bilinear2d_aa_backward(Tensor grad_output, SymInt[2] output_size, "
                 "SymInt[4] input_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> "
                 "Tensor",
       .shape = shapes::upsample_backward},
      {.name = "aten::_upsample_bicubic2d_aa_backward",
       .schema = "aten::_upsample_bicubic2d_aa_backward(Tensor grad_output, SymInt[2] output_size, "
                 "SymInt[4] input_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> "
                 "Tensor",
       .shape = shapes::contiguous_upsample_backward},
      {.name = "aten::upsample_linear1d_backward",
       .schema = "aten::upsample_linear1d_backward(Tensor grad_output, SymInt[1] output_size, SymInt[3] "
                 "input_size, bool align_corners, float? scales=None) -> Tensor",
       .shape = shapes::upsample_backward},
      {.name = "aten::upsample_trilinear3d_backward",
       .schema = "aten::upsample_trilinear3d_backward(Tensor grad_output, SymInt[3] output_size, SymInt[5] "
                 "input_size, bool align_corners, float? scales_d=None, float? scales_h=None, float? "
                 "scales_w=None) -> Tensor",
       .shape = shapes::upsample_backward},
  };
  return table;
}

}  // namespace oxy::ops
