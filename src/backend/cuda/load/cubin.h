// Kernels as machine code of a card, loaded.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/cuda/load/driver.h"

namespace oxy::backend::cuda {

<<<<<<< HEAD
// A kernel that Triton has compiled.
struct Cubin {
  std::string code;           // an ELF file
  std::string function;       // its name in it
  int32_t threads = 0;        // of one program of the grid
  int32_t shared_bytes = 0;   // of one program
  int32_t null_pointers = 0;  // arguments behind the kernel's own that Triton asks for, and that may be null
  friend bool operator==(const Cubin&, const Cubin&) = default;
=======
struct NamedKernel {
  std::string name;  // the function's in the machine code
  CompiledKernel compiled;
>>>>>>> 48f4b1743ea54d749eae68a52f13aed1d81b2a73
};

// The code of each cubin, loaded on every card. InternalError if the driver refuses one.
std::shared_ptr<KernelLibrary> load_cubins(const Driver& driver, const std::vector<Cubin>& cubins);

}  // namespace oxy::backend::cuda
