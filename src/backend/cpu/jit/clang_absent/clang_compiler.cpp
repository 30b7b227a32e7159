#include "backend/cpu/jit/jit.h"
#include "base/error.h"

namespace oxy::backend::cpu {

const bool kHasClang = false;

std::unique_ptr<Compiler> make_clang_compiler() {
  throw Unsupported("this build of oxyfuel has no compiler of its own",
                    "build with OXYFUEL_WITH_LLVM=ON, or set OXYFUEL_COMPILER=system");
}

}  // namespace oxy::backend::cpu
