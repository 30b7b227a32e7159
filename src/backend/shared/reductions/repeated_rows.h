// Rows that each program of a kernel computes for itself, instead of one kernel that computes them for all.
// An example is the norm of a decoder's token, which only products of the token with matrices read: a kernel
// for the norm alone would have one program, and most of the device would wait for it.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "backend/backend.h"
#include "backend/shared/dependencies.h"
#include "backend/shared/fusion.h"
#include "loop/program.h"

namespace oxy::backend {

// The new buffers of each row, by the row's first step in the program as it was. They must not leave the
// kernel that computes them.
using RepeatedRows = std::map<StepId, std::vector<BufferId>>;

// Finds rows that are reduced to one result, together with what is computed from row and result, if only
// reductions with many results read that, the same for each result. Each of these reductions gets copies of
// the row's computations, one for each of its results. The original computations stay, though nobody needs
// them any longer. `apart`: rows that are left alone, by their first step.
RepeatedRows repeat_rows(loop::Program& program, const SplitCosts& costs, const std::set<StepId>& apart);

// The first steps of those rows whose new buffers would pass between kernels.
std::set<StepId> rows_between_kernels(const RepeatedRows& rows, const Dependencies& dependencies,
                                      const IdVector<GroupId, Group>& groups);

}  // namespace oxy::backend
