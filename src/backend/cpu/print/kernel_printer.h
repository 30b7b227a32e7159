// A loop nest as C++ source.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backend/cpu/target.h"
#include "backend/nests/loop_nest.h"

namespace oxy::backend::cpu {

struct KernelText {
  std::string name;                 // the extern "C" symbol, by a hash of the text
  std::string source;               // complete
  std::vector<ArrayId> parameters;  // the arrays that `buffers` points to, in order
};

// `nest` has been finished. Equal nests give equal text. Unsupported for complex numbers.
KernelText print_kernel(const LoopNest& nest, const Target& target);

// Lanes of the vectors in the nest's kernel.
int lane_count(const LoopNest& nest, const Target& target);

}  // namespace oxy::backend::cpu
