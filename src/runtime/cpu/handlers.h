// Operators that have a shorter way than the dispatcher on the CPU. Each returns an empty Invoke for a case
// that it leaves to the general path. Entered in cpu/cpu_device.cpp.
#pragma once

#include <string_view>

#include "runtime/device/call_site.h"

namespace oxy::runtime {

using Handler = Invoke (*)(const CallSite& site);

// cpu/gemm.cpp
Invoke prepare_mm(const CallSite& site);
Invoke prepare_addmm(const CallSite& site);
Invoke prepare_bmm(const CallSite& site);
Invoke prepare_baddbmm(const CallSite& site);
// cpu/attention.cpp
Invoke prepare_attention(const CallSite& site);
// cpu/convolution.cpp
Invoke prepare_convolution(const CallSite& site);
// cpu/packed.cpp: packed weights, and the activations that follow them (Packing::has_activation).
bool has_packed_activation(std::string_view activation, bool with_residual);
Invoke prepare_packed_linear(const CallSite& site);
Invoke prepare_packed_convolution(const CallSite& site);

}  // namespace oxy::runtime
