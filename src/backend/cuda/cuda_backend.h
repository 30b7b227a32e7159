// NVIDIA GPUs: kernels in Triton's language.
#pragma once

#include <memory>

#include "backend/backend.h"
#include "backend/cuda/compile/triton_compiler.h"

namespace oxy::backend::cuda {

<<<<<<< HEAD
// Kernels are for pointers at multiples of 16 bytes. Without a compiler they are printed, but not loaded.
std::unique_ptr<Backend> make_backend(std::shared_ptr<TritonCompiler> compiler = nullptr);
=======
// How kernels are compiled: nothing where no Triton is installed, and they can only be printed then.
std::unique_ptr<Backend> make_backend(std::optional<TritonOptions> triton = {},
                                      std::shared_ptr<const KernelStore> store = {});
>>>>>>> 48f4b1743ea54d749eae68a52f13aed1d81b2a73

}  // namespace oxy::backend::cuda
