// Sums of columns that a kernel of rows makes on its way: it has read what they add, as the gradients of
// layer norm's weights are sums of what the gradient of its input reads.
#pragma once

#include <optional>
#include <set>
#include <vector>

#include "backend/backend.h"
#include "backend/shared/fusion.h"
#include "backend/shared/normal_form.h"
#include "backend/shared/reductions/splits.h"

namespace oxy::backend {

class RowSums {
 public:
  // `apart`: steps of the program that are left to split_long_reduction().
  RowSums(const loop::Program& program, const SplitCosts& costs, const std::set<StepId>& apart);

  // Lets `c`, which is `step` of the program, add up parts of its columns over the loops of rows if some
  // other computation reduces these rows, and returns what combines the parts. Nothing if there is none, or
  // if the rows are too few or too long. `splits`: as for split_long_reduction().
  std::optional<loop::Computation> add_up(loop::Program& program, loop::Computation& c, StepId step,
                                          Splits& splits) const;

 private:
  void find_rows(const loop::Program& program);
  std::optional<RowsShape> rows_of(const std::vector<loop::LoopVariable>& rows,
                                   const std::vector<loop::LoopVariable>& columns) const;

  const SplitCosts& costs_;
  const std::set<StepId>& apart_;
  std::set<std::pair<BufferId, RowsShape>>
      read_;  // by computations that reduce rows, or made from what they give
};

// Those among the steps of add_up(), as steps of the program before it was normalised, that are in no kernel
// which reduces the rows that they add up, or in one that has longer rows beside these.
std::set<StepId> sums_without_rows(const IdVector<StepId, Item>& items,
                                   const IdVector<GroupId, Group>& groups, const SplitCosts& costs);

}  // namespace oxy::backend
