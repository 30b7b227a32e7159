// Compiled with OpenMP on: torch's pool is the OpenMP team that its own operators use.
#include "runtime/cpu/parallel.h"

#include <ATen/Parallel.h>

#ifndef _OPENMP
#error "runtime/cpu/parallel.cpp needs -fopenmp, or at::parallel_for is a serial loop"
#endif

namespace oxy::runtime {

void parallel_slices(int64_t extent, int64_t grain, void* context, SliceBody body) {
  at::parallel_for(0, extent, grain,
                   [&](int64_t begin, int64_t end) { body(context, at::get_thread_num(), begin, end); });
}

int pool_threads() {
  return at::get_num_threads();
}

}  // namespace oxy::runtime
