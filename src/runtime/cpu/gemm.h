// Which library multiplies matrices.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace oxy::runtime {

// Whether oneDNN is ever asked on this machine.
bool has_onednn_products();
// True if oneDNN beats MKL on this machine for a float32 product of `result_elements` sums of `inner` terms.
bool onednn_pays(int64_t result_elements, int64_t inner);

// result = alpha * a @ b + beta * result on oneDNN: two or three dimensions, float32, result contiguous. Only
// where onednn_pays().
void onednn_matmul(const at::Tensor& a, const at::Tensor& b, const at::Tensor& result, float beta,
                   float alpha = 1);

}  // namespace oxy::runtime
