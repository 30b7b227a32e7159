// Kernel source text to callable machine code. One interface, two implementations: clang inside this process
// (jit/clang_compiler.cpp, default) and the system's compiler (jit/system_compiler.cpp).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "plan/plan.h"

namespace oxy::jit {

// Runs the slice [begin, end) of the kernel's outermost loop. Returns 0, or kIndexError if an index was out
// of range (nothing that the caller can see has been written then).
using KernelFunction = int (*)(void* const* buffers, const int64_t* sizes, void* scratch, int64_t begin,
                               int64_t end);
inline constexpr int kIndexError = 1;

// Loaded machine code. The functions are valid while the object lives.
class KernelLibrary {
 public:
  virtual ~KernelLibrary() = default;
  virtual KernelFunction function(size_t kernel) const = 0;  // by position in the span given to compile()
};

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

}  // namespace oxy::jit
