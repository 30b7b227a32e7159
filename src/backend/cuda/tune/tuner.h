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

// A kernel in one of its shapes.
struct Candidate {
  LaunchShape shape;
  KernelText text;
  int64_t programs = 1;  // of a launch
};

// A kernel and the shapes that may be tried. All take the same operands.
struct Trial {
  std::vector<Candidate> candidates;  // that of the cost model's shape first
  Operands operands;
};

// Thread-safe.
class Tuner {
 public:
  // The first two outlive it. `store` may be null: nothing is kept on disk.
  Tuner(const Driver& driver, TritonCompiler& compiler, std::shared_ptr<const FileStore> store)
      : driver_(driver), compiler_(compiler), store_(std::move(store)) {}

  // The position of the fastest candidate of each trial: the first one's where nothing could be timed. The
  // timing log has a line for each kernel as it is done. Unsupported if no kernel can be compiled.
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
  // The shape by the key, in hexadecimal digits; nothing where none is kept on disk.
  std::map<std::string, std::optional<std::string>> choices_;
};

}  // namespace oxy::backend::cuda
