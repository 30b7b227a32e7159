#include "runtime/cpu/cpu_device.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "runtime/cpu/arena_pool.h"
#include "runtime/cpu/gemm.h"
#include "runtime/cpu/handlers.h"
#include "runtime/cpu/launch.h"
#include "runtime/cpu/memory.h"
#include "runtime/cpu/packing.h"

namespace oxy::runtime {

namespace {

bool always() {
  return true;
}
bool never() {
  return false;
}

struct ShortWay {
  std::string_view op;
  Handler prepare;
  bool (*chooses_by_sizes)();
};

constexpr auto kShortWays = std::to_array<ShortWay>({
    {"aten::mm", prepare_mm, has_onednn_products},
    {"aten::addmm", prepare_addmm, has_onednn_products},
    {"aten::bmm", prepare_bmm, has_onednn_products},
    {"aten::baddbmm", prepare_baddbmm, has_onednn_products},
    {"aten::_scaled_dot_product_flash_attention_for_cpu", prepare_attention, always},
    {"aten::convolution", prepare_convolution, always},
    {"oxyfuel::packed_linear", prepare_packed_linear, never},
    {"oxyfuel::packed_convolution", prepare_packed_convolution, never},
});

const ShortWay* short_way(const OperatorSchema& op) {
  const auto found = std::ranges::find(kShortWays, op.name, &ShortWay::op);
  return found == kShortWays.end() ? nullptr : &*found;
}

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
    const ShortWay* const way = short_way(*site.call.op);
    return way == nullptr ? Invoke() : way->prepare(site);
  }
  bool chooses_by_sizes(const OperatorSchema& op) const override {
    const ShortWay* const way = short_way(op);
    return way != nullptr && way->chooses_by_sizes();
  }
  const Packing* packing() const override { return &onednn_packing(); }
};

}  // namespace

std::unique_ptr<DeviceRuntime> make_cpu_device() {
  return std::make_unique<CpuDevice>();
}

}  // namespace oxy::runtime
