// A plan whose sizes are all known, resolved to the form that a call walks through. What differs between sets
// of sizes are numbers alone (plan_numbers.h).
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <span>
#include <variant>
#include <vector>

#include "backend/backend.h"
#include "plan/plan.h"
#include "runtime/device/call_site.h"
#include "runtime/device/launch.h"
#include "runtime/values/host.h"
#include "runtime/values/tensors.h"

namespace oxy::runtime {

// Whether a call draws from its device's default generator, and who makes numbers of what it takes: an
// operator on the device, or the host, which writes them to a tensor of their own.
enum class Draws : uint8_t { No, OnDevice, OnHost };

struct PreparedCall {
  const OperatorSchema* op = nullptr;
  Invoke invoke;
  bool is_replayable = true;  // it does the same each time, on the device alone
  Draws draws = Draws::No;
  std::vector<plan::BufferId> buffers;   // that it reads or writes
  std::vector<plan::BufferId> returned;  // those of them that are extern-owned and exist from here on
};

struct PreparedFree {
  plan::BufferId buffer;
};

// An output's memory is needed from here on.
struct PreparedAllocation {
  plan::BufferId buffer;
  bool stays_inside = false;  // the caller does not see it: it may share a block of memory with others
  // Of this output and of later ones that share blocks; 0 if it has memory of its own.
  int64_t slab_bytes = 0;
};

// No later step reads this input: a caller that gave it away has no more use for it.
struct PreparedRelease {
  plan::BufferId buffer;
  int32_t input;
};

using PreparedStep =
    std::variant<PreparedLaunch, PreparedCall, PreparedFree, PreparedAllocation, PreparedRelease>;

// The windows on one buffer that calls and outputs use. `whole`: the slot that is the buffer itself.
struct BufferSlots {
  TensorSpec whole_spec;
  Slot whole = kNoSlot;
  std::vector<Slot> parts;
};

// A buffer that is an input which a step or an output reads.
struct PreparedInput {
  plan::BufferId buffer;
  int32_t input;
  bool is_written = false;
};

struct PreparedOutput {
  graph::OutputKind kind = graph::OutputKind::Value;
  plan::BufferId buffer = plan::kNoBuffer;  // Value
  Slot slot = kNoSlot;                      // Value: a window on it
  bool copy = false;                        // Value: the memory is not the call's own
  int32_t alias = -1;                       // InputAlias, OutputAlias
  TensorSpec spec;                          // of the alias
};

struct PreparedMutation {
  int32_t input = -1;
  Slot slot = kNoSlot;
  bool copy = false;     // the value is (part of) another input, which another mutation may write first
  bool is_done = false;  // the steps have written it
  bool is_seen = true;   // graph::Mutation's
};

struct PreparedPlan {
  const DeviceRuntime* runtime = nullptr;  // of the devices, which are of one kind
  // Where buffers are, that of the arena first. The host is among them only if it is the only one: else calls
  // alone touch what is there.
  std::vector<c10::Device> devices;
  std::vector<size_t> places;           // by buffer: in `devices`; 0 for those on the host
  std::vector<plan::Storage> storages;  // by buffer
  std::vector<BufferSlots> buffers;
  std::vector<TensorSpec> specs;  // by slot, offsets from the buffer's first element
  std::vector<PreparedInput> inputs;
  std::vector<plan::BufferId> allocated;  // outputs that no step touches
  std::vector<int64_t> arena_offsets;     // by buffer, bytes
  std::vector<int32_t> constants;         // by buffer: the handle, -1 for others
  std::vector<PreparedStep> steps;
  std::vector<PreparedOutput> outputs;
  std::vector<PreparedMutation> mutations;
  std::vector<Slot> transient;              // slots that own tensors of one call only
  int64_t arena_bytes = 0;                  // on the first device
  int64_t scratch_bytes = 0;                // the most that a slice of a launch needs
  std::vector<c10::Device> random_devices;  // on which it draws, each once

  c10::Device device() const { return devices.front(); }
  c10::Device device_of(plan::BufferId buffer) const { return devices[places[buffer.index()]]; }
};

}  // namespace oxy::runtime
