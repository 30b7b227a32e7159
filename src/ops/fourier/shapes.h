// Shape rules of Fourier transforms, laid out as MKL's are on the host.
#pragma once

#include "ops/core/shape_arguments.h"

namespace oxy::ops::shapes {

Metas fourier_of_real(const ShapeContext& context);     // _fft_r2c
Metas fourier_of_complex(const ShapeContext& context);  // _fft_c2c
Metas fourier_to_real(const ShapeContext& context);     // _fft_c2r

}  // namespace oxy::ops::shapes
