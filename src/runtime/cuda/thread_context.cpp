#include "runtime/cuda/thread_context.h"

#include <c10/core/impl/VirtualGuardImpl.h>

namespace oxy::runtime {

void ensure_context(const backend::cuda::Driver& driver) {
  using backend::cuda::check_call;
  backend::cuda::Handle context = nullptr;
  check_call(driver, driver.current_context(&context), "to tell the current context");
  if (context != nullptr) [[likely]]
    return;
  const int device = c10::impl::VirtualGuardImpl(c10::DeviceType::CUDA).getDevice().index();
  check_call(driver, driver.retain_primary_context(&context, device), "the context of a device");
  const backend::cuda::Result result = driver.make_current(context);
  driver.release_primary_context(device);  // PyTorch holds it too
  check_call(driver, result, "to make a context current");
}

}  // namespace oxy::runtime
