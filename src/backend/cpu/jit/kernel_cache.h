// Loaded kernels by the hash of their text: what is in use or was used lately is not compiled again.
#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "backend/cpu/jit/jit.h"
#include "base/hash.h"

namespace oxy::backend::cpu {

// One loaded kernel. The function is valid while the owner lives.
struct LoadedKernel {
  std::shared_ptr<const void> owner;
  SliceFunction function = nullptr;
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
    SliceFunction function = nullptr;
  };

  LoadedKernel find(const Hash128& key);
  void insert(const Hash128& key, const LoadedKernel& kernel);
  // With the mutex held. Returns what is not kept any more, to be let go of without it.
  std::shared_ptr<const void> keep(const std::shared_ptr<const void>& owner);

  std::mutex mutex_;
  // A function that is compiled anew mostly has kernels that it had before. The last used first.
  std::list<std::shared_ptr<const void>> recent_;
  std::unordered_map<const void*, std::list<std::shared_ptr<const void>>::iterator> place_of_;
  std::unordered_map<Hash128, Entry> entries_;
  size_t sweep_at_ = 256;
};

}  // namespace oxy::backend::cpu
