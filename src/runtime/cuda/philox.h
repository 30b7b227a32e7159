// PyTorch's generator of random numbers on a GPU (Philox), for kernels of our own.
#pragma once

#include <optional>

#include "backend/cuda/load/driver.h"
#include "loop/dropout_threads.h"
#include "runtime/device/call_site.h"

namespace oxy::runtime {

// How the kernel of PyTorch's native_dropout uses its threads. It is tried out once for a card and a type,
// and the generator's state is put back. Nothing where it draws otherwise than is known here, or while the
// stream captures. Thread-safe.
std::optional<loop::DropoutThreads> cuda_dropout_threads(const backend::cuda::Driver& driver,
                                                         c10::ScalarType dtype, c10::DeviceIndex index);

// oxyfuel::philox_states(counts, threads, device): takes from the default generator what native_dropout would
// take for tensors of so many elements, one after the other. The result has the seed, and for each of them a
// counter. LeftToEager while the stream captures: only PyTorch's own kernels draw anew when such a graph is
// replayed.
Invoke prepare_philox_states(const backend::cuda::Driver& driver, const CallSite& site);

}  // namespace oxy::runtime
