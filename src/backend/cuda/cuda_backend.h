// NVIDIA GPUs: kernels in Triton's language.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "backend/cuda/compile/triton_compiler.h"
#include "backend/cuda/print/kernel_printer.h"
#include "backend/cuda/tune/tuner.h"

namespace oxy::backend::cuda {

// What is kept on disk. Null: nothing is.
struct Stores {
  std::shared_ptr<const KernelStore> kernels;
  std::shared_ptr<const FileStore> choices;  // the tuner's
};

// What is asked where kernels are tuned: the position of the candidate or of the way to take, for each trial.
struct Choosers {
  std::function<std::vector<size_t>(std::span<const Trial>)> shapes;
  std::function<std::vector<size_t>(std::span<const WaysTrial>)> ways;
};
// Prints kernels as the caller chooses, and compiles nothing: for tests. Without choosers, as the cost model
// does.
std::unique_ptr<Backend> make_printer(std::optional<Choosers> choosers,
                                      EarlyStart early_start = EarlyStart::No);

// How kernels are compiled: nothing where no Triton is installed, and they can only be printed then.
std::unique_ptr<Backend> make_backend(std::optional<TritonOptions> triton = {}, Stores stores = {});

}  // namespace oxy::backend::cuda
