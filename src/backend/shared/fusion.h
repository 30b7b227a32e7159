// Groups computations into kernels.
#pragma once

#include <cstdint>

#include "backend/backend.h"
#include "backend/shared/dependencies.h"

namespace oxy::backend {

// Steps that run as one kernel, sharing their first `extents.size()` loops; or one extern call.
struct Group {
  std::vector<StepId> steps;  // ascending
  std::vector<Expr> extents;  // of the shared loops
  int32_t position = 0;       // groups run in ascending order of it
  double work = 0;            // about instructions, for limiting a kernel's size
  bool is_extern = false;
};

// Bytes for which running a kernel more pays, if they can be used for something else then.
inline constexpr double kMemoryWorthAKernel = 256 * 1024;

struct FusionOptions {
  int parallelism = 1;  // ScheduleOptions'
  bool fuse = true;
  FusionCosts costs;
};

// The groups in the order in which they run. An edge of a dependency inside a group is always legal: what one
// member reads, another has stored in the same iteration of the shared loops. Items that join a reduction may
// be written over its loops (loop_matching.h).
IdVector<GroupId, Group> fuse(const loop::Program& program, IdVector<StepId, Item>& items,
                              const Dependencies& dependencies, const FusionOptions& options);

// Whether reading `load` in an iteration of the first `depth` loops finds what `producer` stored at `store`
// in the same iteration.
bool reads_own_row(const Item& producer, const Expr& store, const Expr& load, size_t depth);

}  // namespace oxy::backend
