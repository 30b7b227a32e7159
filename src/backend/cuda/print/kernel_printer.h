// A loop nest as a Triton kernel: Python text that Triton compiles, and that runs alone.
//
// The text has the kernel, `<name>`, and `<name>_launch`, a dict with what a compiler is given beside it:
// "signature" (types of the arguments), "constants" (block sizes) and "options" (warps; "debug" where indices
// are checked). Arguments are pointers in the order of `parameters`, then the integers of `symbols`.
// Pointers are aligned to 16 bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backend/cuda/launch_shape.h"

namespace oxy::backend::cuda {

struct KernelText {
  std::string name;
  std::string source;
  std::vector<ArrayId> parameters;
  std::vector<Symbol> symbols;
  Expr programs = 1;  // of the launch, which has one dimension
};

// `nest` is finished. Unsupported if Triton cannot do what it asks.
KernelText print_kernel(LoopNest nest, const LaunchShape& shape);

}  // namespace oxy::backend::cuda
