#include "backend/cpu/jit/clang/object_compiler.h"

#include <llvm/Config/llvm-config.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/ErrorHandling.h>
#include <llvm/Support/TargetSelect.h>

#include <mutex>

#include "backend/cpu/jit/clang/backend.h"
#include "backend/cpu/jit/clang/frontend.h"
#include "base/error.h"

namespace oxy::backend::cpu {
namespace {

// LLVM calls this where it would abort. Its frames hold nothing that must be released to go on.
[[noreturn]] void throw_fatal_error(void*, const char* reason, bool) {
  throw InternalError(std::string("clang: ") + reason);
}

void initialise_llvm() {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    llvm::InitializeNativeTargetAsmParser();
    llvm::install_fatal_error_handler(throw_fatal_error);
  });
}

}  // namespace

std::string compile_object(std::string_view source, const backend::cpu::Target& target) {
  initialise_llvm();
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> module = parse_kernel(source, target, context);
  return generate_object(*module, target);
}

std::string clang_version() {
  return LLVM_VERSION_STRING;
}

}  // namespace oxy::backend::cpu
