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

// The position of the candidate to take, for each trial.
using ChooseShapes = std::function<std::vector<size_t>(std::span<const Trial>)>;
// Prints kernels of shapes that the caller chooses, and compiles nothing: for tests. An empty `choose`: of
// those of the cost model.
std::unique_ptr<Backend> make_printer(ChooseShapes choose, EarlyStart early_start = EarlyStart::No);

// How kernels are compiled: nothing where no Triton is installed, and they can only be printed then.
std::unique_ptr<Backend> make_backend(std::optional<TritonOptions> triton = {}, Stores stores = {});

}  // namespace oxy::backend::cuda
