// The device that factories take where the program names none: `with torch.device(...)` and
// torch.set_default_device(). PyTorch keeps each as a mode of __torch_function__ on the thread's stack, and
// the topmost one counts (torch/utils/_device.py). While a program is captured they are off the stack, and
// the interpreter gives factories the device itself.
#pragma once

#include <ATen/PythonTorchFunctionTLS.h>
#include <c10/core/Device.h>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "cpy/ref.h"

namespace oxy::eval {

// What modes of __torch_function__ there are on this thread. The GIL is held.
struct FunctionModes {
  int contexts = 0;                   // those of default devices
  int others = 0;                     // all others
  std::optional<c10::Device> device;  // the default one

  static FunctionModes current();
};

// Takes the modes of this thread away, and puts them back at the end.
class WithoutFunctionModes {
 public:
  WithoutFunctionModes();
  ~WithoutFunctionModes();
  WithoutFunctionModes(const WithoutFunctionModes&) = delete;
  WithoutFunctionModes& operator=(const WithoutFunctionModes&) = delete;

 private:
  at::impl::PythonTorchFunctionTLS saved_;
};

// What a segment changes for the code behind it: it leaves so many contexts, and then enters these.
struct DefaultDeviceChange {
  size_t left = 0;
  std::vector<cpy::Ref> entered;  // torch.device objects, the outermost one first

  // False: a Python error is set.
  bool apply() const;
};

// The default device as the interpreted program has it.
class DefaultDevices {
 public:
  DefaultDevices();  // those of this thread

  void enter(cpy::Ref device) { devices_.push_back(std::move(device)); }
  // False: there is none.
  bool leave();
  // A torch.device; null if there is none.
  PyObject* current() const { return devices_.empty() ? nullptr : devices_.back().get(); }
  DefaultDeviceChange change() const;
  std::span<const cpy::Ref> all() const { return devices_; }  // the outermost one first

 private:
  std::vector<cpy::Ref> devices_;
  size_t at_start_, kept_;  // how many there were, and how many of these were never left
};

// While one lives, the devices are modes on the thread's stack as in eager: for code that runs for real.
class WithDefaultDevices {
 public:
  explicit WithDefaultDevices(const DefaultDevices& devices);
  ~WithDefaultDevices();
  WithDefaultDevices(const WithDefaultDevices&) = delete;
  WithDefaultDevices& operator=(const WithDefaultDevices&) = delete;

 private:
  int64_t before_;
};

}  // namespace oxy::eval
