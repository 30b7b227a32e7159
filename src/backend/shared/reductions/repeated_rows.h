// Rows that every program of a kernel makes anew, instead of one kernel for all: the norm of a decoder's
// token, which one kernel with one program would make while the device waits, and which only products of the
// row with matrices read.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "backend/backend.h"
#include "backend/shared/dependencies.h"
#include "backend/shared/fusion.h"
#include "loop/program.h"

namespace oxy::backend {

// New buffers that must not leave the kernel that makes them, by the step of the program, as it was, with
// which the rows began.
using RepeatedRows = std::map<StepId, std::vector<BufferId>>;

// Finds single rows that are reduced, and what is made of them, if only reductions over the same row with
// many results read it. Gives each of these reductions computations of its own that make the row for each
// result. The computations that nobody needs any longer stay. `apart`: rows that are left alone, by their
// first step.
RepeatedRows repeat_rows(loop::Program& program, const SplitCosts& costs, const std::set<StepId>& apart);

// The first steps of those rows whose new buffers would pass between kernels.
std::set<StepId> rows_between_kernels(const RepeatedRows& rows, const Dependencies& dependencies,
                                      const IdVector<GroupId, Group>& groups);

}  // namespace oxy::backend
