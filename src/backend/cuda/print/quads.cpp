#include "backend/cuda/print/quads.h"

#include <algorithm>
#include <optional>

#include "loop/random_bits.h"
#include "loop/variables.h"

namespace oxy::backend::cuda {

using loop::InstId;
using loop::kPhiloxWords;
using loop::Op;

namespace {

bool contains(const Expr& e, const Expr& variable) {
  return std::ranges::any_of(sym::variables(e), [&](const Expr& v) { return v == variable; });
}

}  // namespace

// The variables are none of the nest's: views have been resolved.
Quads::Quads(const Axis& columns)
    : columns_(columns),
      quad_(loop::index_variable(loop::kViewVariables, 0, sym::ceildiv(columns.extent, kPhiloxWords))),
      word_(loop::index_variable(loop::kViewVariables, 1, kPhiloxWords)) {}

Expr Quads::split(const Expr& e) const {
  return sym::substitute(e, [&](int64_t id) -> std::optional<Expr> {
    if (id != columns_.variable.variable_id()) return std::nullopt;
    return quad_ * kPhiloxWords + word_;
  });
}

bool Quads::is_same_in_group(const Expr& e) const {
  return !contains(split(e), word_);
}

bool Quads::is_same_in_group(const Phase& phase, InstId id) const {
  const NestInst& inst = phase.insts[id];
  if (inst.op == Op::Constant) return true;
  if (inst.op == Op::Load)
    return inst.operands[0] == loop::kNoInst && !contains(phase.expressions[inst.index], columns_.variable);
  if (inst.op == Op::Index) return is_same_in_group(phase.expressions[inst.index]);
  return inst.op == Op::Add && is_same_in_group(phase, inst.operands[0]) &&
         is_same_in_group(phase, inst.operands[1]);
}

bool Quads::are_of_one_draw(const Phase& phase, const NestInst& philox) const {
  if (columns_.block % kPhiloxWords != 0 || columns_.variable.kind() != sym::Kind::Variable) return false;
  const NestInst& position = phase.insts[philox.operands[2]];
  if (position.op != Op::Index || !is_same_in_group(phase, philox.operands[0]) ||
      !is_same_in_group(phase, philox.operands[1]))
    return false;
  const Expr place = split(phase.expressions[position.index]);
  return sym::mod(place, kPhiloxWords) == word_ && !contains(sym::floordiv(place, kPhiloxWords), word_);
}

}  // namespace oxy::backend::cuda
