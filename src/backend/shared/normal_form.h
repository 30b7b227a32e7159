// A computation in the scheduler's normal form: loops without unit extents, named by position, accesses by
// linear offset, in the order that runs best.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "backend/backend.h"
#include "backend/shared/nest_expressions.h"
#include "backend/shared/reductions/splits.h"
#include "loop/program.h"

namespace oxy::backend {

using loop::BufferId;
using loop::IndexId;
using loop::InstId;
using loop::StepId;

struct ItemStore {
  BufferId buffer;
  Expr offset;   // elements from the buffer's first
  InstId value;  // none with a reduction
  loop::StoreMode mode = loop::StoreMode::Set;
  int result = 0;         // with a reduction: which of its results
  bool in_order = false;  // loop::Store's
  loop::RowPart part;     // likewise
};

struct Item {
  StepId step;
  std::vector<Expr>
      extents;  // of the loops, then of the reduction loops; variable k is nest_variable(k, extents[k])
  size_t loop_count = 0;  // the first of them that are not reduced
  loop::ReductionKind kind = loop::ReductionKind::None;
  DType accumulate = DType::Float32;
  InstId reduced;
  std::optional<Expr> counted;     // Computation's
  std::optional<StepId> added_up;  // the step that RowSums::add_up() made it of
  // A Bool of a nest's own, one a row. The rows where it is false are skipped, and what the item stores stays
  // as earlier items stored it.
  BufferId condition;
  IdVector<InstId, loop::Inst> insts;  // Load: `index` names the offset in `expressions`
  IdVector<IndexId, Expr> expressions;
  std::vector<ItemStore> stores;
  std::string origin;

  bool is_reduction() const { return kind != loop::ReductionKind::None; }
  bool is_scan() const { return loop::is_scan(kind); }
};

// Normalises the program's computations in order, gives every buffer whose layout is free the one that suits
// the loops that write it, and splits long reductions on the way (reductions/split_reductions.h), which adds
// steps. One item a step of what the program is then; extern calls have an empty one. `splits`: as for
// split_long_reduction(). `apart`: RowSums'.
IdVector<StepId, Item> normalise(loop::Program& program, const SplitCosts& costs, Splits& splits,
                                 const std::set<StepId>& apart = {});

// How many loads of a reduction are contiguous from result to result, less those that are contiguous from one
// reduced element to the next. 0 for an item of another kind, and where there is one result.
int loads_across(const Item& item);

}  // namespace oxy::backend
