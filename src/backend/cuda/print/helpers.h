// Functions of Triton's language that kernels call and Triton does not have. A kernel's text begins with
// those that it uses.
#pragma once

#include <set>
#include <string>
#include <string_view>

namespace oxy::backend::cuda {

// What a kernel's text needs beside the kernel.
struct Needs {
  std::set<std::string> helpers;  // by name
  bool libdevice = false;         // NVIDIA's mathematical functions
};

// The text of the helpers, those they call before them.
std::string helpers_text(const Needs& needs);

}  // namespace oxy::backend::cuda
