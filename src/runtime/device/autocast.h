// Autocast, which torch keeps for each type of device.
#pragma once

#include <c10/core/DeviceType.h>
#include <c10/core/ScalarType.h>

#include <array>
#include <optional>

namespace oxy::runtime {

// The types of devices on which programs may use it.
inline constexpr std::array kAutocastDevices = {c10::DeviceType::CPU, c10::DeviceType::CUDA};

struct Autocast {
  bool enabled = false;
  c10::ScalarType dtype = c10::ScalarType::BFloat16;

  static Autocast of(c10::DeviceType device);  // on this thread
  void apply(c10::DeviceType device) const;
  bool operator==(const Autocast&) const = default;
};

// By the order of kAutocastDevices.
using AutocastByDevice = std::array<Autocast, kAutocastDevices.size()>;
AutocastByDevice current_autocast();
void apply(const AutocastByDevice& autocast);

// What it casts to on this thread; nothing where it is off.
std::optional<c10::ScalarType> autocast_type(c10::DeviceType device);

// It is off on all devices for a while.
class WithoutAutocast {
 public:
  WithoutAutocast();
  ~WithoutAutocast() { apply(before_); }
  WithoutAutocast(const WithoutAutocast&) = delete;
  WithoutAutocast& operator=(const WithoutAutocast&) = delete;

 private:
  AutocastByDevice before_;
};

// It casts to `type` on `device` for a while, without the cache of casts; with no type, nothing changes.
class UnderAutocast {
 public:
  UnderAutocast(c10::DeviceType device, std::optional<c10::ScalarType> type);
  ~UnderAutocast();
  UnderAutocast(const UnderAutocast&) = delete;
  UnderAutocast& operator=(const UnderAutocast&) = delete;

 private:
  c10::DeviceType device_;
  std::optional<Autocast> before_;
  bool had_cache_ = false;
};

}  // namespace oxy::runtime
