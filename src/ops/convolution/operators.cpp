// The table of convolutions.
#include "ops/convolution/lowerings.h"
#include "ops/convolution/shapes.h"
#include "ops/core/families.h"

namespace oxy::ops {

Family convolution_operators() {
  static const OperatorEntry table[] = {
      {.name = "aten::convolution",
       .schema =
           "aten::convolution(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, "
           "SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups) -> Tensor",
       .shape = shapes::convolution,
       .traits = {.layouts = Layouts::Any, .type_check = TypeCheck::OneFloat}},
      {.name = "aten::convolution_backward",
       .schema = "aten::convolution_backward(Tensor grad_output, Tensor input, Tensor weight, SymInt[]? "
                 "bias_sizes, SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool transposed, "
                 "SymInt[] output_padding, SymInt groups, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
       .shape = shapes::convolution_backward,
       .has_result = output_mask,
       .traits = {.layouts = Layouts::Any, .type_check = TypeCheck::OneFloat}},
      // Each channel of an image with a window of its own. The weight is contiguous: rows and columns of the
      // window, then channels, then 1.
      {.name = "oxyfuel::depthwise_convolution",
       .schema = "oxyfuel::depthwise_convolution(Tensor input, Tensor weight, int[] stride, int[] padding, "
                 "int[] dilation, MemoryFormat memory_format) -> Tensor",
       .shape = shapes::depthwise_convolution,
       .lower = lowerings::depthwise_convolution},
  };
  return table;
}

}  // namespace oxy::ops
