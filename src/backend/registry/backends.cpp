#include "backend/registry/backends.h"

#include <map>
#include <mutex>

#include "backend/cpu/cpu_backend.h"
#include "base/error.h"

namespace oxy::backend {

namespace {

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

}  // namespace oxy::backend
