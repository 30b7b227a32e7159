#include <fmt/format.h>
#include <fmt/ranges.h>

#include "backend/cpu/jit/clang/backend.h"
#include "backend/cpu/jit/clang/object_compiler.h"
#include "backend/cpu/jit/clang/object_loader.h"
#include "backend/cpu/jit/jit.h"
#include "backend/cpu/jit/kernel_cache.h"
#include "backend/cpu/jit/parallel.h"
#include "backend/cpu/target.h"

namespace oxy::backend::cpu {
namespace {

class ClangCompiler : public Compiler {
 public:
  explicit ClangCompiler(backend::cpu::Target target) : target_(std::move(target)) {}

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
    return {code, reinterpret_cast<SliceFunction>(code->symbol())};
  }

  backend::cpu::Target target_;
  KernelCache cache_;
};

}  // namespace

const bool kHasClang = true;

std::unique_ptr<Compiler> make_clang_compiler() {
  return std::make_unique<ClangCompiler>(backend::cpu::host_target());
}

}  // namespace oxy::backend::cpu
