// The run-time half of the contract between what is common and a kind of device: memory, launches, and the
// short ways into its libraries. The other half, how kernels are made, is backend/backend.h.
// runtime/execution asks; runtime/cpu answers, and so does every other device.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "loop/dropout_threads.h"
#include "runtime/device/arena.h"
#include "runtime/device/device_graph.h"
#include "runtime/device/launch.h"
#include "runtime/device/packing.h"
#include "runtime/values/tensors.h"

namespace oxy::plan {
struct Plan;
}

namespace oxy::runtime {

struct CallSite;

// Runs a prepared extern call on the table of tensors: reads the argument slots, leaves the results in the
// output slots.
using Invoke = std::function<void(at::Tensor* tensors)>;

// One kind of device. Thread-safe; lives for ever.
class DeviceRuntime {
 public:
  virtual ~DeviceRuntime() = default;

  // Kernels rely on addresses that are multiples of so many bytes, a power of 2.
  virtual uintptr_t alignment() const { return 1; }
  // `bytes` of memory, 64-byte aligned, contents undefined, of the device with this index.
  virtual c10::DataPtr allocate(int64_t bytes, c10::DeviceIndex index) const = 0;
  // Uninitialised, with exactly these strides; spec.offset does not count.
  virtual at::Tensor empty(const TensorSpec& spec, c10::DeviceIndex index) const = 0;
  virtual ArenaSource& arenas() const = 0;
  // `scratch_bytes`: the most that a launch of the frame asks for.
  virtual std::unique_ptr<LaunchQueue> new_queue(int64_t scratch_bytes, c10::DeviceIndex index) const = 0;

  // A shorter way than torch's dispatcher for this call; empty if there is none.
  virtual Invoke prepare_call(const CallSite& site) const = 0;
  // Whether sizes decide which way that is, or whether there is one.
  virtual bool chooses_by_sizes(const OperatorSchema& op) const = 0;
  // Whether graph_maker() may give one.
  virtual bool makes_graphs() const { return false; }
  // Of the current stream of the device with this index. Null: work cannot be recorded there now.
  virtual std::shared_ptr<DeviceGraphMaker> graph_maker(c10::DeviceIndex /*index*/) const { return nullptr; }
  // How PyTorch's kernel for dropout shares elements of this type among threads; nothing where it is not
  // known. May try it out on the device, and then puts the generator's state back.
  virtual std::optional<loop::DropoutThreads> dropout_threads(c10::ScalarType /*dtype*/,
                                                              c10::DeviceIndex /*index*/) const {
    return std::nullopt;
  }
  // Names the queue on which work is done that is given to the device with this index now: results are there
  // for later work of the same queue. Nothing: the program records its work, and nothing is done yet.
  virtual std::optional<int64_t> current_queue(c10::DeviceIndex /*index*/) const { return 0; }
  // Performs nodes of the graph once in the background, if libraries are slow at the first one of a kind. It
  // uses the queue that current_queue() names 0. Sizes that are symbols have their values at hand
  // (sym/hints.h).
  virtual void rehearse(const graph::Graph& /*graph*/, c10::DeviceIndex /*index*/) const {}
  // How weights are laid out for its libraries; null: they take them as they are.
  virtual const Packing* packing() const { return nullptr; }
};

// Null: plans do not run on such devices, and what is on them runs in eager. registry/devices.cpp has the
// rows.
const DeviceRuntime* find_device(c10::DeviceType type);
// Finds those that the process uses already, so that the current device of their kind counts
// (device/current.h) before one of their tensors is seen. The GIL is held.
void notice_devices_in_use();
// All that have a row, those included for which there is none here.
std::span<const c10::DeviceType> device_types();
// Why there is none, in a sentence for the user.
std::string why_no_device(c10::DeviceType type);
// As find_device(); Unsupported where that gives null.
const DeviceRuntime& device_runtime(c10::DeviceType type);

// Uninitialised, with exactly these strides.
inline at::Tensor empty_tensor(const TensorSpec& spec, c10::Device device) {
  return device_runtime(device.type()).empty(spec, device.index());
}

}  // namespace oxy::runtime
