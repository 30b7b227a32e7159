// Which of several devices of a kind is meant where a program names none.
#pragma once

#include <c10/core/Device.h>

namespace oxy::runtime {

// The index of this thread's current device, for the accelerator that PyTorch was built for; -1 where it was
// built for the CPU alone.
c10::DeviceIndex current_device_index();

// `device`, with the index of the current one if it has none. The host has no index.
c10::Device with_index(c10::Device device);

}  // namespace oxy::runtime
