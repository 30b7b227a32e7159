// Products to which a matrix is added before they are stored.
#pragma once

#include "runtime/device/call_site.h"

namespace oxy::runtime {

// oxyfuel::residual_product(residual [m, n], bias [n] or None, mat1 [m, k], mat2 [k, n]) of half precision,
// by cuBLASLt, rounded once. PyTorch's operators compute, and round twice, what it does not take: other
// layouts, addresses, sizes or devices, and what PyTorch's settings restrict. Empty where the library is not
// there, or nobody wants the result.
Invoke prepare_residual_product(const CallSite& site);

}  // namespace oxy::runtime
