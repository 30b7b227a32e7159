#include "backend/cpu/tile.h"

#include <algorithm>

namespace oxy::backend::cpu {

namespace {

using backend::LoopNest;
using backend::LoopVariable;

constexpr int64_t kLeastSide = 8;

// The outer loop along which most of the loads run that lanes cross with a stride.
std::optional<size_t> row_loop(const LoopNest& nest) {
  const backend::Phase& phase = nest.phases[0];
  std::vector<int> votes(nest.outer.size());
  for (const backend::NestInst& inst : phase.insts) {
    if (inst.op != loop::Op::Load || inst.operands[0] != loop::kNoInst) continue;
    if (nest.arrays[inst.buffer].dtype != DType::Float32) continue;
    const Expr& offset = phase.expressions[inst.index];
    auto along = backend::stride_of(offset, nest.outer.back().variable);
    if (backend::has_bound_variable(offset)) continue;  // backend::is_transposed
    if (!along || *along == Expr(0) || *along == Expr(1)) continue;
    for (size_t k = 0; k + 1 < nest.outer.size(); ++k) {
      auto stride = backend::stride_of(offset, nest.outer[k].variable);
      if (stride && *stride == Expr(1)) ++votes[k];
    }
  }
  auto best = std::ranges::max_element(votes);
  if (*best == 0) return std::nullopt;
  return static_cast<size_t>(best - votes.begin());
}

}  // namespace

void tile_transposes(LoopNest& nest) {
  if (nest.axis != backend::VectorAxis::Outer || nest.outer.size() < 2 || nest.phases.size() != 1 ||
      nest.serial)
    return;
  const backend::Phase& phase = nest.phases[0];
  if (!phase.loops.empty() || !phase.reduction.empty()) return;
  auto row = row_loop(nest);
  if (!row) return;
  if (backend::estimate(nest.outer[*row].extent) < kLeastSide ||
      backend::estimate(nest.outer.back().extent) < kLeastSide)
    return;
  LoopVariable moved = nest.outer[*row];
  nest.outer.erase(nest.outer.begin() + static_cast<std::ptrdiff_t>(*row));
  nest.outer.insert(nest.outer.end() - 1, moved);
  nest.tiled = true;
}

}  // namespace oxy::backend::cpu
