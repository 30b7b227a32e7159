#include "runtime/cpu/memory.h"

#include <ATen/EmptyTensor.h>
#include <c10/core/CPUAllocator.h>

#include <cstdlib>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace oxy::runtime {

namespace {

constexpr size_t kHugePage = size_t{2} << 20;  // bytes
constexpr size_t kPage = 4096;
constexpr size_t kManyHugePages = 16;

// Torch's own memory, in huge pages where it is large: outputs of many megabytes are made anew on every call,
// and each page of them costs a fault. The alignment may cost as much memory as it asks for, so the largest
// go without it: but for less than one huge page at each end they lie in huge pages all the same.
c10::DataPtr allocate(size_t bytes) {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  if (bytes >= kHugePage && c10::GetCPUAllocator() == c10::GetDefaultCPUAllocator()) {
    void* memory = nullptr;
    if (posix_memalign(&memory, bytes < kManyHugePages * kHugePage ? kHugePage : kPage, bytes) == 0) {
      madvise(memory, bytes / kPage * kPage, MADV_HUGEPAGE);  // a hint: it may be refused
      return {memory, memory, &std::free, c10::Device(c10::DeviceType::CPU)};
    }
  }
#endif
  return c10::GetCPUAllocator()->allocate(bytes);
}

}  // namespace

c10::DataPtr allocate_on_cpu(int64_t bytes) {
  return allocate(static_cast<size_t>(bytes));
}

at::Tensor empty_on_cpu(const TensorSpec& spec) {
  const auto bytes = static_cast<size_t>(bytes_of(spec));
  if (bytes < kHugePage) return at::detail::empty_strided_cpu(spec.sizes, spec.strides, spec.dtype);
  c10::Storage storage(c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), bytes,
                                                             allocate(bytes), c10::GetCPUAllocator(),
                                                             /*resizable=*/true));
  return tensor_over(std::move(storage), {spec.dtype, spec.sizes, spec.strides, 0});
}

}  // namespace oxy::runtime
