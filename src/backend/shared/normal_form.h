// A computation in the scheduler's normal form: loops without unit extents, named by position, accesses by
// linear offset, in the order that runs best.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/shared/nest_expressions.h"
#include "loop/program.h"

namespace oxy::backend {

using loop::BufferId;
using loop::InstId;

struct ItemStore {
  BufferId buffer = loop::kNoBuffer;
  Expr offset;                   // elements from the buffer's first
  InstId value = loop::kNoInst;  // with a reduction: the number of the result
  loop::StoreMode mode = loop::StoreMode::Set;
};

struct Item {
  int32_t step = -1;  // of the program
  std::vector<Expr>
      extents;  // of the loops, then of the reduction loops; variable k is nest_variable(k, extents[k])
  size_t loop_count = 0;  // the first of them that are not reduced
  loop::ReductionKind kind = loop::ReductionKind::None;
  DType accumulate = DType::Float32;
  InstId reduced = loop::kNoInst;
  std::vector<loop::Inst> insts;  // Load: `index` names the offset in `expressions`
  std::vector<Expr> expressions;
  std::vector<ItemStore> stores;
  std::string origin;

  bool is_reduction() const { return kind != loop::ReductionKind::None; }
};

// Normalises the program's computations in order, and gives every buffer whose layout is free the one that
// suits the loops that write it. One item a computation; extern calls have an empty one.
std::vector<Item> normalise(loop::Program& program);

// The number of elements that a buffer spans in memory.
Expr span_elements(const loop::Buffer& buffer);
// The bytes of them, sizes that are not known guessed (estimate); 0 while the layout is open.
double estimated_bytes(const loop::Buffer& buffer);

}  // namespace oxy::backend
