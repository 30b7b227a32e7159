#include "backend/registry/backends.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <mutex>
#include <thread>

#include "backend/cpu/cpu_backend.h"
#include "backend/cuda/cuda_backend.h"
#include "base/config.h"
#include "base/error.h"

namespace oxy::backend {

namespace {

constexpr size_t kMostWorkers = 16;
constexpr uintmax_t kMostCacheBytes = uintmax_t{1} << 30;
constexpr uintmax_t kMostChoiceBytes = 16 << 20;

struct Registry {
  std::mutex mutex;
  std::map<Device::Kind, std::unique_ptr<Backend>> backends;

  Registry() { backends.emplace(Device::Kind::Cpu, cpu::make_backend(cpu::host_target())); }
};

// Never destroyed: plans are compiled while the process ends, too.
Registry& registry() {
  static Registry& instance = *new Registry;
  return instance;
}

}  // namespace

const Backend* find_backend(Device::Kind kind) {
  Registry& known = registry();
  const std::lock_guard lock(known.mutex);
  const auto found = known.backends.find(kind);
  return found == known.backends.end() ? nullptr : found->second.get();
}

void register_backend(Device::Kind kind, std::unique_ptr<Backend> backend) {
  Registry& known = registry();
  const std::lock_guard lock(known.mutex);
  check(known.backends.try_emplace(kind, std::move(backend)).second,
        "there is a backend for this kind of device");
}

void use_triton(std::string python, std::string worker, std::string version) {
  cuda::TritonOptions options;
  options.command = {std::move(python), std::move(worker)};
  options.version = std::move(version);
  options.most_workers = std::clamp<size_t>(std::thread::hardware_concurrency(), 1, kMostWorkers);
  cuda::Stores stores;
  if (!config().cache.empty()) {
    const std::filesystem::path folder = std::filesystem::path(config().cache) / "triton";
    stores.kernels = std::make_shared<cuda::KernelStore>(folder, kMostCacheBytes);
    stores.choices = std::make_shared<cuda::FileStore>(folder, ".choice", kMostChoiceBytes);
  }
  register_backend(Device::Kind::Cuda, cuda::make_backend(std::move(options), std::move(stores)));
}

}  // namespace oxy::backend
