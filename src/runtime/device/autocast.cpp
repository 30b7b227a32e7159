#include "runtime/device/autocast.h"

#include <ATen/autocast_mode.h>

namespace oxy::runtime {

Autocast Autocast::of(c10::DeviceType device) {
  return {at::autocast::is_autocast_enabled(device), at::autocast::get_autocast_dtype(device)};
}

void Autocast::apply(c10::DeviceType device) const {
  at::autocast::set_autocast_enabled(device, enabled);
  at::autocast::set_autocast_dtype(device, dtype);
}

AutocastByDevice current_autocast() {
  AutocastByDevice result;
  for (size_t i = 0; i < result.size(); ++i) result[i] = Autocast::of(kAutocastDevices[i]);
  return result;
}

void apply(const AutocastByDevice& autocast) {
  for (size_t i = 0; i < autocast.size(); ++i) autocast[i].apply(kAutocastDevices[i]);
}

std::optional<c10::ScalarType> autocast_type(c10::DeviceType device) {
  if (!at::autocast::is_autocast_enabled(device)) return std::nullopt;
  return at::autocast::get_autocast_dtype(device);
}

WithoutAutocast::WithoutAutocast() : before_(current_autocast()) {
  for (const c10::DeviceType device : kAutocastDevices) at::autocast::set_autocast_enabled(device, false);
}

UnderAutocast::UnderAutocast(c10::DeviceType device, std::optional<c10::ScalarType> type) : device_(device) {
  if (!type) return;
  before_ = Autocast::of(device);
  had_cache_ = at::autocast::is_autocast_cache_enabled();
  Autocast{true, *type}.apply(device);
  at::autocast::set_autocast_cache_enabled(false);
}

UnderAutocast::~UnderAutocast() {
  if (!before_) return;
  before_->apply(device_);
  at::autocast::set_autocast_cache_enabled(had_cache_);
}

}  // namespace oxy::runtime
