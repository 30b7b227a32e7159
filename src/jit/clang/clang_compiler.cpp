#include <fmt/format.h>
#include <fmt/ranges.h>

#include "codegen/target.h"
#include "jit/clang/backend.h"
#include "jit/clang/object_compiler.h"
#include "jit/clang/object_loader.h"
#include "jit/jit.h"
#include "jit/kernel_cache.h"
#include "jit/parallel.h"

namespace oxy::jit {
namespace {

class ClangCompiler : public Compiler {
 public:
  explicit ClangCompiler(codegen::Target target) : target_(std::move(target)) {}

  std::shared_ptr<KernelLibrary> compile(std::span<const plan::Kernel> kernels) override {
    return cache_.get(kernels, [&](std::span<const size_t> missing) {
      std::vector<LoadedKernel> loaded(missing.size());
      for_each_in_parallel(missing.size(), [&](size_t i) { loaded[i] = compile_one(kernels[missing[i]]); });
      drop_code_generators();
      return loaded;
    });
  }

  std::string description() const override {
    return fmt::format("clang {} in process, {}", clang_version(), fmt::join(target_.features, " "));
  }

 private:
  LoadedKernel compile_one(const plan::Kernel& kernel) const {
    auto code = load_object(compile_object(kernel.source, target_), kernel.name);
    return {code, reinterpret_cast<KernelFunction>(code->symbol())};
  }

  codegen::Target target_;
  KernelCache cache_;
};

}  // namespace

const bool kHasClang = true;

std::unique_ptr<Compiler> make_clang_compiler() {
  return std::make_unique<ClangCompiler>(codegen::host_target());
}

}  // namespace oxy::jit
