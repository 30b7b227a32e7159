// NVIDIA GPUs: kernels in Triton's language.
#pragma once

#include <memory>

#include "backend/backend.h"
#include "backend/cuda/compile/triton_compiler.h"

namespace oxy::backend::cuda {

// Kernels are for pointers at multiples of 16 bytes. Without a compiler they are printed, but not loaded.
std::unique_ptr<Backend> make_backend(std::shared_ptr<TritonCompiler> compiler = nullptr);

}  // namespace oxy::backend::cuda
