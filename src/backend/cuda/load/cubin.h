// Kernels as machine code of a card, loaded by the driver.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "backend/backend.h"
#include "backend/cuda/compile/kernel_store.h"
#include "backend/cuda/load/driver.h"

namespace oxy::backend::cuda {

struct NamedKernel {
  std::string name;  // the function's in the machine code
  CompiledKernel compiled;
  bool starts_early = false;  // GridFunction's
};

// Loads each kernel for every card. InternalError if the driver refuses one. `driver` lives for ever.
std::shared_ptr<KernelLibrary> load_kernels(const Driver& driver, std::span<const NamedKernel> kernels);

}  // namespace oxy::backend::cuda
