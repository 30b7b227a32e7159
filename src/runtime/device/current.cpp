#include "runtime/device/current.h"

#include <c10/core/impl/VirtualGuardImpl.h>
#include <pthread.h>

#include <atomic>

#include "runtime/values/host.h"

namespace oxy::runtime {

namespace {

std::atomic<c10::DeviceType> in_use = kHost;
std::atomic<bool> is_lost = false;

void after_fork_in_child() {
  if (in_use.exchange(kHost) != kHost) is_lost = true;
}

}  // namespace

void use_accelerator(c10::DeviceType type) {
  if (type == kHost) return;
  static const bool is_watching [[maybe_unused]] = pthread_atfork(nullptr, nullptr, after_fork_in_child) == 0;
  in_use.store(type, std::memory_order_release);
}

bool is_accelerator_lost() {
  return is_lost.load(std::memory_order_acquire);
}

bool is_accelerator_in_use() {
  return in_use.load(std::memory_order_acquire) != kHost;
}

c10::DeviceIndex current_device_index() {
  const c10::DeviceType type = in_use.load(std::memory_order_acquire);
  if (type == kHost) return static_cast<c10::DeviceIndex>(is_accelerator_lost() ? -1 : 0);
  return c10::impl::VirtualGuardImpl(type).getDevice().index();
}

void set_current_device_index(c10::DeviceIndex index) {
  const c10::DeviceType type = in_use.load(std::memory_order_acquire);
  if (type == kHost) return;
  const c10::impl::VirtualGuardImpl guard(type);
  const c10::Device device(type, index);
  if (guard.getDevice() != device) guard.setDevice(device);
}

bool is_default_stream_current(c10::Device device) {
  if (device.type() == kHost) return true;
  const c10::impl::VirtualGuardImpl guard(device.type());
  return guard.getStream(device) == guard.getDefaultStream(device);
}

c10::Device with_index(c10::Device device) {
  if (device.has_index() || device.type() == kHost) return device;
  return c10::impl::VirtualGuardImpl(device.type()).getDevice();
}

}  // namespace oxy::runtime
