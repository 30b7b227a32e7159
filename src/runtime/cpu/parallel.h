// Slices of a loop on torch's own pool.
#pragma once

#include <cstdint>

namespace oxy::runtime {

using SliceBody = void (*)(void* context, int thread, int64_t begin, int64_t end);

// Runs body over [0, extent) in slices of at least `grain`, at most one a thread of torch's intra-op pool; in
// this thread alone if extent <= grain, if the pool has one thread or if it already runs inside a parallel
// region. `thread` is below pool_threads(). Rethrows the first exception of a slice.
void parallel_slices(int64_t extent, int64_t grain, void* context, SliceBody body);

int pool_threads();

}  // namespace oxy::runtime
