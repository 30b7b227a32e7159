// NVIDIA GPUs: kernels in Triton's language.
#pragma once

#include <memory>
#include <optional>

#include "backend/backend.h"
#include "backend/cuda/compile/triton_compiler.h"

namespace oxy::backend::cuda {

// How kernels are compiled: nothing where no Triton is installed, and they can only be printed then.
std::unique_ptr<Backend> make_backend(std::optional<TritonOptions> triton = {},
                                      std::shared_ptr<const KernelStore> store = {});

}  // namespace oxy::backend::cuda
