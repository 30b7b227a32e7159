// Loaded kernels by the hash of their text: as long as one user lives, the same text is not compiled again.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/hash.h"
#include "jit/jit.h"

namespace oxy::jit {

// One loaded kernel. The function is valid while the owner lives.
struct LoadedKernel {
  std::shared_ptr<const void> owner;
  KernelFunction function = nullptr;
};

class KernelCache {
 public:
  // Compiles the kernels that `missing` names (positions, each text once); one result a position, in that
  // order.
  using CompileMissing = std::function<std::vector<LoadedKernel>(std::span<const size_t> missing)>;

  // Two threads that miss the same text at once both compile it; the later result is kept. Passes exceptions
  // on.
  std::shared_ptr<KernelLibrary> get(std::span<const plan::Kernel> kernels, const CompileMissing& compile);

 private:
  struct Entry {
    std::weak_ptr<const void> owner;
    KernelFunction function = nullptr;
  };

  LoadedKernel find(const Hash128& key);
  void insert(const Hash128& key, const LoadedKernel& kernel);

  std::mutex mutex_;
  std::unordered_map<Hash128, Entry> entries_;
  size_t sweep_at_ = 256;
};

}  // namespace oxy::jit
