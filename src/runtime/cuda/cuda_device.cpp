#include "runtime/cuda/cuda_device.h"

#include <ATen/Context.h>
#include <ATen/EmptyTensor.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <fmt/format.h>

#include "aten/operators.h"
#include "backend/cuda/load/driver.h"
#include "runtime/cuda/attention.h"
#include "runtime/cuda/graphs/captured_graph.h"
#include "runtime/cuda/graphs/cuda_graph_maker.h"
#include "runtime/cuda/launch.h"
#include "runtime/cuda/library_layouts.h"
#include "runtime/cuda/philox.h"
#include "runtime/cuda/rehearsal.h"
#include "runtime/cuda/thread_context.h"
#include "runtime/device/call_site.h"

namespace oxy::runtime {

namespace {

constexpr int kOldestCard = 80;

c10::Device device_of(c10::DeviceIndex index) {
  return {c10::DeviceType::CUDA, index};
}

// PyTorch's allocator keeps freed memory for itself, by stream: an arena is lent by asking for it.
class CachedArenas : public ArenaSource {
 public:
  Arena take(int64_t bytes, c10::DeviceIndex index) override {
    const c10::DeviceGuard guard(device_of(index));
    return {c10::GetAllocator(c10::DeviceType::CUDA)->allocate(static_cast<size_t>(bytes)), bytes};
  }
  void release(Arena arena) noexcept override { arena.memory.clear(); }
};

class CudaDevice : public DeviceRuntime {
 public:
  explicit CudaDevice(const backend::cuda::Driver& driver) : driver_(driver), rehearsals_(driver) {}

  uintptr_t alignment() const override { return 16; }  // TritonKernel::is_aligned
  c10::DataPtr allocate(int64_t bytes, c10::DeviceIndex index) const override {
    const c10::DeviceGuard guard(device_of(index));
    return c10::GetAllocator(c10::DeviceType::CUDA)->allocate(static_cast<size_t>(bytes));
  }
  at::Tensor empty(const TensorSpec& spec, c10::DeviceIndex index) const override {
    const c10::DeviceGuard guard(device_of(index));
    constexpr c10::DispatchKeySet keys(c10::DispatchKey::CUDA);
    return at::detail::empty_strided_generic(c10::IntArrayRef(spec.sizes), c10::IntArrayRef(spec.strides),
                                             c10::GetAllocator(c10::DeviceType::CUDA), keys, spec.dtype);
  }
  ArenaSource& arenas() const override {
    static CachedArenas& source = *new CachedArenas;  // never destroyed: plans run while the process ends
    return source;
  }
  std::unique_ptr<LaunchQueue> new_queue(int64_t /*scratch_bytes*/, c10::DeviceIndex index) const override {
    return make_grid_queue(driver_, index);
  }
  Invoke prepare_call(const CallSite& site) const override {
    if (site.call.op == op::philox_states()) return prepare_philox_states(driver_, site);
    return prepare_attention_on_cuda(site);
  }
  bool chooses_by_sizes(const OperatorSchema& /*op*/) const override { return false; }
  void rehearse(const graph::Graph& graph, c10::DeviceIndex index) const override {
    rehearsals_.add(graph, index);
  }
  const Packing* packing() const override {
    return &cuda_packing(backend::cuda::compute_capability(driver_, 0));  // all cards are of one
  }
  std::optional<loop::DropoutThreads> dropout_threads(c10::ScalarType dtype,
                                                      c10::DeviceIndex index) const override {
    return cuda_dropout_threads(driver_, dtype, index);
  }
  bool makes_graphs() const override { return driver_.graphs.is_complete(); }
  std::shared_ptr<DeviceGraphMaker> graph_maker(c10::DeviceIndex index) const override {
    return cuda_graph_maker(driver_, index);
  }
  std::optional<int64_t> current_queue(c10::DeviceIndex index) const override {
    if (!driver_.graphs.is_complete()) return std::nullopt;  // nobody can tell
    ensure_context(driver_);
    const c10::DeviceGuard current(device_of(index));  // whose default stream a default stream is
    const c10::Stream stream = c10::impl::VirtualGuardImpl(c10::DeviceType::CUDA).getStream(device_of(index));
    if (is_capturing(driver_, stream.native_handle())) return std::nullopt;
    return stream.id();
  }

 private:
  const backend::cuda::Driver& driver_;
  mutable Rehearsals rehearsals_;
};

}  // namespace

std::unique_ptr<DeviceRuntime> make_cuda_device(std::string& missing) {
  if (!at::hasCUDA()) {
    missing = "this PyTorch is built without CUDA";
    return nullptr;
  }
  const backend::cuda::Driver* const driver = backend::cuda::find_driver(missing);
  if (driver == nullptr) return nullptr;
  int devices = 0;
  if (driver->device_count(&devices) != 0 || devices == 0) {
    missing = "NVIDIA's driver sees no card";
    return nullptr;
  }
  // Kernels are compiled for the first card and loaded on all of them.
  const int first = backend::cuda::compute_capability(*driver, 0);
  for (int device = 0; device < devices; ++device) {
    const int card = backend::cuda::compute_capability(*driver, device);
    if (card >= kOldestCard && card == first) continue;
    missing = fmt::format("card {} is of compute capability {}.{}, and {} is needed", device, card / 10,
                          card % 10, card < kOldestCard ? "8.0" : "that of card 0");
    return nullptr;
  }
  return std::make_unique<CudaDevice>(*driver);
}

}  // namespace oxy::runtime
