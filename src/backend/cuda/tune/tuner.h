// Block shapes and numbers of parts by trial: mode="max-autotune". The shapes of candidates.h, or the kernels
// of several ways to do the same, are compiled and timed on the device. The fastest is kept, in memory and on
// disk.
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

// A kernel in the shape that the cost model chose, and how often it is launched.
struct Launches {
  Trial kernel;  // with one candidate
  int64_t count = 1;
};

// Ways to do the same. Kernels that all of them launch may be left out.
struct WaysTrial {
  struct Way {
    std::string name;
    std::vector<Launches> launches;
  };
  std::string subject;
  std::vector<Way> ways;  // the chosen one first
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
  // Likewise the position of the way whose launches take the least time together.
  std::vector<size_t> fastest_ways(std::span<const WaysTrial> trials, int architecture);

 private:
  template <class AnyTrial>
  std::vector<size_t> known_or_tuned(std::span<const AnyTrial> trials, int architecture);
  void tune(std::span<const Trial* const> trials, int architecture);
  void tune(std::span<const WaysTrial* const> trials, int architecture);
  // Of a trial whose candidates are called `choices`.
  Hash128 key(const Trial& trial, std::span<const std::string> choices, int architecture) const;
  Hash128 key(const Trial& trial, int architecture) const;
  Hash128 key(const WaysTrial& trial, int architecture) const;
  std::optional<size_t> known(const Hash128& key, std::span<const std::string> choices);
  void keep(const Hash128& key, const std::string& choice);

  const Driver& driver_;
  TritonCompiler& compiler_;
  std::shared_ptr<const FileStore> store_;
  std::mutex mutex_;
  // The choice as text by the key, in hexadecimal digits; nothing where none is kept on disk.
  std::map<std::string, std::optional<std::string>> choices_;
};

}  // namespace oxy::backend::cuda
