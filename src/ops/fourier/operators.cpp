// The table of Fourier transforms.
#include "ops/core/families.h"
#include "ops/fourier/shapes.h"

namespace oxy::ops {

Family fourier_operators() {
  static const OperatorEntry table[] = {
      {.name = "aten::_fft_r2c",
       .schema = "aten::_fft_r2c(Tensor self, int[] dim, int normalization, bool onesided) -> Tensor",
       .shape = shapes::fourier_of_real,
       .traits = {.mixes_elements = true}},
      {.name = "aten::_fft_c2c",
       .schema = "aten::_fft_c2c(Tensor self, SymInt[] dim, int normalization, bool forward) -> Tensor",
       .shape = shapes::fourier_of_complex,
       .traits = {.mixes_elements = true}},
      {.name = "aten::_fft_c2r",
       .schema = "aten::_fft_c2r(Tensor self, int[] dim, int normalization, SymInt last_dim_size) -> Tensor",
       .shape = shapes::fourier_to_real,
       .traits = {.mixes_elements = true}},
  };
  return table;
}

}  // namespace oxy::ops
