// Kernel source to LLVM IR that nothing has optimised yet.
#pragma once

#include <memory>
#include <string_view>

#include "backend/cpu/target.h"

namespace llvm {
class LLVMContext;
class Module;
}  // namespace llvm

namespace oxy::backend::cpu {

// The module lives in `context`. No file is read: the source must not include anything. InternalError with
// clang's diagnostics if the source is not valid. Thread-safe for different contexts.
std::unique_ptr<llvm::Module> parse_kernel(std::string_view source, const backend::cpu::Target& target,
                                           llvm::LLVMContext& context);

}  // namespace oxy::backend::cpu
