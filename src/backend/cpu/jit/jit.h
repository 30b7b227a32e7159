// Kernel source text to callable machine code. One interface, two implementations: clang inside this process
// (jit/clang_compiler.cpp, default) and the system's compiler (backend/cpu/jit/system_compiler.cpp).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "plan/plan.h"

namespace oxy::backend::cpu {

class Compiler {
 public:
  virtual ~Compiler() = default;
  // Compiles every kernel, identical sources once, over all cores. Unsupported if no compiler can be had or
  // the disk is full; InternalError with the diagnostics if a source does not compile. Thread-safe.
  virtual std::shared_ptr<KernelLibrary> compile(std::span<const plan::Kernel> kernels) = 0;
  virtual std::string description() const = 0;  // "clang 19.1.7 in process, avx512f avx512vl ..."
};

extern const bool kHasClang;  // whether this build holds clang

// The compiler that this build and OXYFUEL_COMPILER ("clang", "system") select; made once, lives for ever.
Compiler& default_compiler();
std::unique_ptr<Compiler> make_clang_compiler();   // Unsupported in a build without LLVM
std::unique_ptr<Compiler> make_system_compiler();  // Unsupported if no c++ compiler is found

}  // namespace oxy::backend::cpu
