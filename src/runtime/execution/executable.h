// A plan made ready to run: kernels loaded, constants held, arenas pooled.
#pragma once

#include <ATen/core/Tensor.h>

#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "plan/plan.h"
#include "runtime/device/launch.h"
#include "runtime/values/tensors.h"

namespace oxy::runtime {

inline constexpr size_t kAllOutputs = std::numeric_limits<size_t>::max();

class Executable {
 public:
  // `constants[h]` is the tensor with handle h. Outputs from `visible_outputs` on never leave the library.
  Executable(plan::Plan plan, std::shared_ptr<backend::KernelLibrary> kernels,
             std::vector<at::Tensor> constants, size_t visible_outputs = kAllOutputs);
  ~Executable();

  // Runs on inputs that satisfy the guards (plan input i is inputs[i]); outputs in plan order. Thread-safe;
  // the GIL may be released. Throws LeftToEager, or what an extern kernel throws.
  std::vector<at::Tensor> run(std::span<const at::Tensor> inputs, SymbolValues symbols);

  // The same, for inputs that nobody else needs: each is dropped after the last step that reads it.
  std::vector<at::Tensor> run_and_release(std::vector<at::Tensor> inputs, SymbolValues symbols);

  const plan::Plan& plan() const;
  int64_t arena_bytes() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace oxy::runtime
