#include "backend/cpu/jit/kernel_cache.h"

#include "base/error.h"

namespace oxy::backend::cpu {
namespace {

// Owners: a kernel that clang compiled, some 30 KiB, or the library of one call of the system's compiler.
constexpr size_t kMostKept = 512;

class Library : public KernelLibrary {
 public:
  explicit Library(std::vector<LoadedKernel> kernels) : kernels_(std::move(kernels)) {}

  KernelFunction function(size_t kernel) const override {
    check(kernel < kernels_.size(), "the library has no kernel of this number");
    return kernels_[kernel].function;
  }

 private:
  std::vector<LoadedKernel> kernels_;
};

Hash128 key_of(const plan::Kernel& kernel) {
  std::string text;
  text.reserve(kernel.name.size() + 1 + kernel.source.size());
  text.append(kernel.name).push_back('\0');
  text.append(kernel.source);
  return hash128(text);
}

}  // namespace

std::shared_ptr<const void> KernelCache::keep(const std::shared_ptr<const void>& owner) {
  const auto known = place_of_.find(owner.get());
  if (known != place_of_.end()) {
    recent_.splice(recent_.begin(), recent_, known->second);
    return nullptr;
  }
  recent_.push_front(owner);
  place_of_.emplace(owner.get(), recent_.begin());
  if (recent_.size() <= kMostKept) return nullptr;
  std::shared_ptr<const void> last = std::move(recent_.back());
  recent_.pop_back();
  place_of_.erase(last.get());
  return last;
}

LoadedKernel KernelCache::find(const Hash128& key) {
  std::shared_ptr<const void> dropped;
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(key);
  if (found == entries_.end()) return {};
  auto owner = found->second.owner.lock();
  if (!owner) return {};
  dropped = keep(owner);
  return {std::move(owner), found->second.function};
}

void KernelCache::insert(const Hash128& key, const LoadedKernel& kernel) {
  std::shared_ptr<const void> dropped;
  const std::lock_guard lock(mutex_);
  if (entries_.size() >= sweep_at_) {
    std::erase_if(entries_, [](const auto& entry) { return entry.second.owner.expired(); });
    sweep_at_ = 2 * entries_.size() + 256;
  }
  entries_[key] = {kernel.owner, kernel.function};
  dropped = keep(kernel.owner);
}

std::shared_ptr<KernelLibrary> KernelCache::get(std::span<const plan::Kernel> kernels,
                                                const CompileMissing& compile) {
  std::vector<LoadedKernel> loaded(kernels.size());
  std::vector<Hash128> keys(kernels.size());
  std::unordered_map<Hash128, size_t> place_of;  // in `missing`
  std::vector<size_t> missing;
  for (size_t i = 0; i < kernels.size(); ++i) {
    keys[i] = key_of(kernels[i]);
    loaded[i] = find(keys[i]);
    if (!loaded[i].function && place_of.emplace(keys[i], missing.size()).second) missing.push_back(i);
  }
  if (!missing.empty()) {
    std::vector<LoadedKernel> compiled = compile(missing);
    check(compiled.size() == missing.size(), "the compiler lost a kernel");
    for (size_t i = 0; i < missing.size(); ++i) insert(keys[missing[i]], compiled[i]);
    for (size_t i = 0; i < kernels.size(); ++i)
      if (!loaded[i].function) loaded[i] = compiled[place_of.at(keys[i])];
  }
  return std::make_shared<Library>(std::move(loaded));
}

}  // namespace oxy::backend::cpu
