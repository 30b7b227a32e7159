// Work that is recorded once and replayed: many launches and extern calls for the price of one.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/device/arena.h"
#include "runtime/device/generator_position.h"

namespace oxy::runtime {

// Memory that lies at another address at each replay: an input, or a result that the caller keeps.
struct MovableMemory {
  uintptr_t address = 0;
  int64_t bytes = 0;
};

// A result that an operator has put into memory of its own. Replayed, it writes to a movable memory instead,
// and whatever is enqueued afterwards finds it there: its own memory is free again.
struct MadeResult {
  size_t memory = 0;  // by movable memory
  uintptr_t address = 0;
  size_t end_node = 0;  // DeviceGraphMaker::enqueued() behind the operator
};

// Recorded work. One replay at a time.
class DeviceGraph {
 public:
  virtual ~DeviceGraph() = default;
  // Whether the movable memories of DeviceGraphMaker::record() may lie at these addresses: all are aligned as
  // they were when the work was recorded, which libraries may rely on. Memory of the allocator fits.
  virtual bool fits(std::span<const uintptr_t> addresses) const = 0;
  // Enqueues the work on the current stream, with the movable memories at these addresses. `draws`: where
  // each operator that draws starts. Precondition: the addresses fit.
  virtual void replay(std::span<const uintptr_t> addresses, std::span<const GeneratorPosition> draws) = 0;
};

// Thrown: the work cannot be recorded.
struct NotReplayable {
  std::string reason;          // for the user
  std::optional<size_t> node;  // which part of the work it is, by DeviceGraphMaker::enqueued()
  bool is_of_draws = false;    // no operator that draws can be recorded
};

// Records what is enqueued on one of the caller's streams, and owns the memory that its graphs share:
// their work is done in the order of the stream, one call after the other.
class DeviceGraphMaker {
 public:
  virtual ~DeviceGraphMaker() = default;

  // Held by a call from its first replay to its last. A call that does not get it runs without graphs.
  std::mutex& in_use() { return in_use_; }
  // Says that a plan will be recorded soon that needs an arena of so many bytes, as long as the token lives.
  virtual std::shared_ptr<void> announce(int64_t bytes) = 0;
  // At least `bytes` that every graph of the stream may write to, and what is announced if there is so much.
  virtual std::shared_ptr<const Arena> arena(int64_t bytes) = 0;
  // Memory that record() needs, and no graph: held while calls of a plan are recorded. Its end takes the GIL.
  virtual std::shared_ptr<void> recording_memory() = 0;
  // Performs `work` in the order of the stream, so that libraries have prepared themselves when record()
  // follows on this thread. What it allocates is memory of the graphs.
  virtual void warm_up(const std::function<void()>& work) = 0;

  // Enqueues the work with the movable memories at these addresses. Returns what of them operators have made
  // elsewhere.
  using Enqueue = std::function<std::vector<MadeResult>(std::span<const uintptr_t> addresses)>;
  // `enqueue` is called several times, with the addresses of the memories and with others; nothing is
  // performed. `draws`: how much each operator of the work that draws takes from the device's default
  // generator, which stays where it is. Throws NotReplayable, or what `enqueue` throws.
  virtual std::unique_ptr<DeviceGraph> record(std::span<const MovableMemory> memories,
                                              std::span<const uint64_t> draws, const Enqueue& enqueue) = 0;
  // To be called by `enqueue` for each operator that draws, in their order: calls `enqueue_operator`.
  virtual void draw(const std::function<void()>& enqueue_operator) = 0;
  // To be called by `enqueue` before each of its parts, whose numbers ascend. A part follows the parts
  // `after` and what these follow, and may be performed beside the others.
  virtual void begin_part(size_t part, std::span<const size_t> after) = 0;
  // How many kernels, copies and fills `enqueue` has enqueued so far.
  virtual size_t enqueued() = 0;

 private:
  std::mutex in_use_;
};

}  // namespace oxy::runtime
