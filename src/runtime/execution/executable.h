// A plan made ready to run: kernels loaded, constants held, arenas pooled.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "plan/plan.h"
#include "runtime/device/launch.h"
#include "runtime/values/tensors.h"

namespace oxy::runtime {

inline constexpr size_t kAllOutputs = std::numeric_limits<size_t>::max();

// When a call records its work, so that later calls of the same sizes replay it
// (runtime/device/device_graph.h).
enum class DeviceGraphPolicy : uint8_t { Never, AfterTwoCalls, AtFirstCall };

// What is recorded of a plan, over all its sizes.
struct DeviceGraphState {
  size_t spans = 0;  // that are replayed
  // The arenas that they work in, by address: their bytes. Graphs of one stream share one.
  std::map<const void*, int64_t> arenas;
  // Why steps are not recorded: "aten::nonzero: ...".
  std::vector<std::string> reasons;

  int64_t bytes() const {
    int64_t total = 0;
    for (const auto& [address, bytes] : arenas) total += bytes;
    return total;
  }
  void add(const DeviceGraphState& other) {
    spans += other.spans;
    arenas.insert(other.arenas.begin(), other.arenas.end());
    reasons.insert(reasons.end(), other.reasons.begin(), other.reasons.end());
  }
};

struct ExecutableOptions {
  size_t visible_outputs = kAllOutputs;  // outputs from here on never leave the library
  DeviceGraphPolicy graphs = DeviceGraphPolicy::AfterTwoCalls;
};

class Executable {
 public:
  // `constants[h]` is the tensor with handle h.
  Executable(plan::Plan plan, std::shared_ptr<backend::KernelLibrary> kernels,
             std::vector<at::Tensor> constants, ExecutableOptions options = {});
  ~Executable();

  // Runs on inputs that satisfy the guards (plan input i is inputs[i]); outputs in plan order. Thread-safe;
  // the GIL may be released. Throws LeftToEager, or what an extern kernel throws; nothing that the caller can
  // see has changed then. Throws FailedAfterRun where that is not so.
  std::vector<at::Tensor> run(std::span<const at::Tensor> inputs, SymbolValues symbols);

  // The same, for inputs that nobody else needs: each is dropped after the last step that reads it.
  std::vector<at::Tensor> run_and_release(std::vector<at::Tensor> inputs, SymbolValues symbols);

  // The same inputs, outputs and constants with other steps. Does not record device graphs.
  std::unique_ptr<Executable> with_plan(plan::Plan plan,
                                        std::shared_ptr<backend::KernelLibrary> kernels) const;

  // The last call replayed device graphs and ran nothing else.
  bool only_replays() const;

  const plan::Plan& plan() const;
  int64_t arena_bytes() const;
  DeviceGraphState device_graph_state() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace oxy::runtime
