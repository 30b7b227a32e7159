// A launch whose sizes are known, and what performs it.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <variant>
#include <vector>

#include "backend/backend.h"
#include "plan/plan.h"
#include "sym/relations/condition.h"

namespace oxy::runtime {

struct PreparedSlices {
  backend::SliceFunction function = nullptr;
  int64_t extent = 1;
  int64_t grain = 1;          // iterations of one slice, at least
  int64_t scratch_bytes = 0;  // of one slice that runs, a multiple of 64
};

struct PreparedGrid {
  backend::GridFunction function;
  std::array<int64_t, 3> size{1, 1, 1};  // programs
};

struct PreparedLaunch {
  std::vector<plan::BufferId> buffers;  // the kernel's arguments
  std::vector<plan::BufferId> written;  // those of them that it writes to
  std::vector<int64_t> sizes;           // and its integers
  std::variant<PreparedSlices, PreparedGrid> shape;
  std::shared_ptr<const plan::LaunchOrigin> origin;  // null: not known
  size_t place = 0;                                  // the device, among those of the plan
  bool has_work = true;  // the extent, or each size of the grid, is above zero; without, nothing is launched
};

// A graph failed behind its last step: it may have changed what the caller can see, so that the call must not
// run in eager as well.
class FailedAfterRun : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The call cannot go on as a plan: a kernel met an index out of range, which eager reports best, or it would
// write to memory that is not aligned, or a condition of the graph does not hold. Nothing that the caller can
// see was changed (mutations are committed last, the generator's state is restored): the segment is to run in
// eager.
struct LeftToEager {
  std::optional<sym::Condition> unmet = {};  // the condition
};

// Performs the launches of one frame on one device, in order. Used by one call at a time.
class LaunchQueue {
 public:
  virtual ~LaunchQueue() = default;
  // The launches that follow belong to a new call.
  virtual void begin_call() {}
  // `buffers[i]`: the address of launch.buffers[i]. A later step may rely on what the kernel wrote.
  virtual void launch(const PreparedLaunch& launch, void* const* buffers) = 0;
  // After the last launch, before anything is changed that the caller can see. Throws LeftToEager if a
  // kernel of this call met one.
  virtual void end_call() {}
  // Of memory that is kept between calls.
  virtual int64_t held_bytes() const { return 0; }
};

}  // namespace oxy::runtime
