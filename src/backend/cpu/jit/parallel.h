// Runs independent pieces of work on every core.
#pragma once

#include <cstddef>
#include <functional>

namespace oxy::backend::cpu {

// Calls work(0) ... work(count - 1), each once, on up to `threads` threads (0: OXYFUEL_COMPILE_THREADS, else
// one a core), the calling one among them. Returns when all are done; then rethrows the first exception, if
// any. The calling thread may be interrupted between two of them (base/interruption.h). The threads live for
// this call only, so a fork between calls is safe.
void for_each_in_parallel(size_t count, const std::function<void(size_t)>& work, int threads = 0);

}  // namespace oxy::backend::cpu
