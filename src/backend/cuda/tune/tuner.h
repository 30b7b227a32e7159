// Block shapes by trial: mode="max-autotune". The shapes of candidates.h are compiled, timed on the device,
// and the fastest is kept, in memory and on disk.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/cuda/compile/triton_compiler.h"
#include "backend/cuda/print/kernel_printer.h"
#include "backend/cuda/tune/stopwatch.h"

namespace oxy::backend::cuda {

// A kernel with the shapes that may be tried. Only their texts differ.
struct Trial {
  std::vector<LaunchShape> shapes;  // the chosen one first
  std::vector<KernelText> texts;    // one a shape
  Operands operands;
  std::vector<int64_t> programs;  // one a shape
};

// Thread-safe.
class Tuner {
 public:
  // The first two outlive it. `store` may be null: nothing is kept on disk.
  Tuner(const Driver& driver, TritonCompiler& compiler, std::shared_ptr<const FileStore> store)
      : driver_(driver), compiler_(compiler), store_(std::move(store)) {}

  // The position of the fastest shape of each trial: the first one's where nothing could be timed. The timing
  // log has a line for each kernel as it is done. Unsupported if no kernel can be compiled.
  std::vector<size_t> fastest(std::span<const Trial> trials, int architecture);

 private:
  void tune(std::span<const Trial* const> trials, int architecture);
  Hash128 key(const Trial& trial, int architecture) const;
  std::optional<size_t> known(const Hash128& key, const Trial& trial);
  void keep(const Hash128& key, const LaunchShape& shape);

  const Driver& driver_;
  TritonCompiler& compiler_;
  std::shared_ptr<const FileStore> store_;
  std::mutex mutex_;
  std::map<std::string, std::string> choices_;  // by key, in hexadecimal digits; shape_text()'s
};

}  // namespace oxy::backend::cuda
