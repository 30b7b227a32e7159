// Operators that have a shorter way than the dispatcher. Each returns an empty Invoke for a case that it
// leaves to the general path. Entered in extern/table.cpp.
#pragma once

#include "runtime/extern/call_site.h"

namespace oxy::runtime {

using Handler = Invoke (*)(const CallSite& site);

// extern/gemm.cpp
Invoke prepare_mm(const CallSite& site);
Invoke prepare_addmm(const CallSite& site);
Invoke prepare_bmm(const CallSite& site);
Invoke prepare_baddbmm(const CallSite& site);
// extern/convolution.cpp
Invoke prepare_convolution(const CallSite& site);
// extern/packed.cpp
Invoke prepare_packed_linear(const CallSite& site);
Invoke prepare_packed_convolution(const CallSite& site);
// extern/general.cpp: any operator, through the dispatcher.
Invoke prepare_general(const CallSite& site);

}  // namespace oxy::runtime
