#include "backend/cpu/jit/jit.h"
#include "base/config.h"

namespace oxy::backend::cpu {

Compiler& default_compiler() {
  // Never destroyed: kernels may be released while the process ends.
  static Compiler* once = [] {
    bool system = config().compiler == "system" || (config().compiler.empty() && !kHasClang);
    return (system ? make_system_compiler() : make_clang_compiler()).release();
  }();
  return *once;
}

}  // namespace oxy::backend::cpu
