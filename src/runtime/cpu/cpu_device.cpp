#include "runtime/cpu/cpu_device.h"

#include <array>
#include <string_view>
#include <utility>

#include "runtime/cpu/arena_pool.h"
#include "runtime/cpu/handlers.h"
#include "runtime/cpu/launch.h"
#include "runtime/cpu/memory.h"
#include "runtime/cpu/packing.h"

namespace oxy::runtime {

namespace {

constexpr auto kHandlers = std::to_array<std::pair<std::string_view, Handler>>({
    {"aten::mm", prepare_mm},
    {"aten::addmm", prepare_addmm},
    {"aten::bmm", prepare_bmm},
    {"aten::baddbmm", prepare_baddbmm},
    {"aten::convolution", prepare_convolution},
    {"oxyfuel::packed_linear", prepare_packed_linear},
    {"oxyfuel::packed_convolution", prepare_packed_convolution},
});

class CpuDevice : public DeviceRuntime {
 public:
  c10::DataPtr allocate(int64_t bytes, c10::DeviceIndex /*index*/) const override {
    return allocate_on_cpu(bytes);
  }
  at::Tensor empty(const TensorSpec& spec, c10::DeviceIndex /*index*/) const override {
    return empty_on_cpu(spec);
  }
  ArenaSource& arenas() const override { return arena_pool(); }
  std::unique_ptr<LaunchQueue> new_queue(int64_t scratch_bytes, c10::DeviceIndex /*index*/) const override {
    return make_slice_queue(scratch_bytes);
  }
  Invoke prepare_call(const CallSite& site) const override {
    for (const auto& [name, handler] : kHandlers)
      if (name == site.call.op->name) return handler(site);
    return {};
  }
  const Packing* packing() const override { return &onednn_packing(); }
};

}  // namespace

std::unique_ptr<DeviceRuntime> make_cpu_device() {
  return std::make_unique<CpuDevice>();
}

}  // namespace oxy::runtime
