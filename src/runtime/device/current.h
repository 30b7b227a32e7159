// Which of several devices of a kind is meant where a program names none.
#pragma once

#include <c10/core/Device.h>

namespace oxy::runtime {

// Plans run on this kind of device from now on, so that its current device counts.
void use_accelerator(c10::DeviceType type);

// False in a process that was forked from one that used a device.
bool is_accelerator_in_use();
// Whether this process was forked from one that used a device. Drivers do not allow it to use the device, so
// plans for it do not run here.
bool is_accelerator_lost();

// The index of this thread's current device, of the kind in use; 0, as every thread begins, while none is; -1
// where it is lost, so that what was captured before is not taken for what this process may run.
c10::DeviceIndex current_device_index();
// Does nothing while no kind is in use.
void set_current_device_index(c10::DeviceIndex index);

// Whether work that is given to the device now goes to its default stream.
bool is_default_stream_current(c10::Device device);

// `device`, with the index of the current one if it has none. The host has no index.
c10::Device with_index(c10::Device device);

}  // namespace oxy::runtime
