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

// Whether a kernel may take its place on the device before the one before it has ended ("programmatic
// dependent launch" in the CUDA programming guide). Such a kernel waits before it touches memory. Cards from
// compute capability 9.0 on can do this, and the text compiles for no others.
enum class EarlyStart : uint8_t { No, Yes };

// `nest` is finished. Unsupported if Triton cannot do what it asks.
KernelText print_kernel(LoopNest nest, const LaunchShape& shape, EarlyStart early_start);

}  // namespace oxy::backend::cuda
