#include "backend/cuda/index_comparisons.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace oxy::backend::cuda {

namespace {

using loop::kNoInst;
using loop::Op;
using sym::Kind;

bool is_positive(const Expr& e) {
  return e.range().low > 0;
}

bool contains(const Expr& e, const Expr& part) {
  return e == part || std::ranges::any_of(e.operands(), [&](const Expr& o) { return contains(o, part); });
}

bool is_compared(const NestInst& inst) {
  return inst.op == Op::Lt || inst.op == Op::Ge;
}

// What is computed anyway: offsets, and indices that are not only compared.
std::vector<Expr> computed_anyway(const Phase& phase) {
  std::vector<Expr> result;
  IdVector<InstId, bool> is_operand(phase.insts.size());
  for (const NestInst& inst : phase.insts)
    for (size_t k = 0; k < inst.operands.size(); ++k)
      if (inst.operands[k] != kNoInst && !(k == 0 && is_compared(inst))) is_operand[inst.operands[k]] = true;
  for (const InstId id : phase.insts.ids())
    if (const NestInst& inst = phase.insts[id]; inst.op == Op::Load || is_operand[id])
      if (inst.index != loop::kNoIndex) result.push_back(phase.expressions[inst.index]);
  for (const ElementStore& store : phase.stores) result.push_back(store.offset);
  return result;
}

// Elements of the widest vector.
constexpr int64_t kVector = 16;

// One step from `index` < `bound` to the same without a division. False if there is none, or if it does not
// pay: a remainder of a quotient may be computed anyway, or be the same for whole vectors.
bool undivide(Expr& index, Expr& bound, const std::vector<Expr>& computed) {
  if (index.kind() == Kind::Sum) {
    const auto number = std::ranges::find_if(index.operands(), &Expr::is_constant);
    if (number == index.operands().end()) return false;
    const Expr moved = *number;
    Expr rest = index - moved, less = bound - moved;
    if (!undivide(rest, less, computed)) return false;
    index = std::move(rest);
    bound = std::move(less);
    return true;
  }
  const bool is_remainder = index.kind() == Kind::Mod;
  const Expr quotient = is_remainder ? index.operands()[0] : index;
  if (quotient.kind() != Kind::FloorDiv) return false;
  const Expr divisor = quotient.operands()[1];
  if (!is_positive(divisor)) return false;
  if (!is_remainder) {
    index = quotient.operands()[0];
    bound = bound * divisor;
    return true;
  }
  if (!is_positive(index.operands()[1]) || sym::known_divisible(divisor, kVector)) return false;
  if (std::ranges::any_of(computed, [&](const Expr& e) { return contains(e, index); })) return false;
  index = sym::mod(quotient.operands()[0], divisor * index.operands()[1]);
  bound = bound * divisor;
  return true;
}

// What the operand is as an expression, if it is one.
std::optional<Expr> expression_of(const Phase& phase, InstId id) {
  const NestInst& inst = phase.insts[id];
  if (inst.op == Op::Index) return phase.expressions[inst.index];
  const auto* number = inst.op == Op::Constant ? std::get_if<int64_t>(&inst.constant.value) : nullptr;
  return number != nullptr ? std::optional(Expr(*number)) : std::nullopt;
}

// The operands of a comparison without divisions, if that is another comparison.
std::optional<std::pair<Expr, Expr>> undivided(const Phase& phase, const NestInst& inst,
                                               const std::vector<Expr>& computed) {
  if (!is_compared(inst)) return std::nullopt;
  if (phase.insts[inst.operands[0]].op != Op::Index) return std::nullopt;
  auto index = expression_of(phase, inst.operands[0]), bound = expression_of(phase, inst.operands[1]);
  if (!bound) return std::nullopt;
  const auto varies = [](const Expr& v) {
    return is_nest_variable(v.variable_id()) || is_bound_variable(v.variable_id());
  };
  if (!bound->is_constant() && std::ranges::any_of(sym::variables(*bound), varies)) return std::nullopt;
  bool is_other = false;
  while (undivide(*index, *bound, computed)) is_other = true;
  return is_other ? std::optional(std::pair(*index, *bound)) : std::nullopt;
}

}  // namespace

void compare_undivided(Phase& phase) {
  const std::vector<Expr> computed = computed_anyway(phase);
  IdVector<InstId, std::optional<std::pair<Expr, Expr>>> replaced;
  IdVector<InstId, bool> is_needed(phase.insts.size());  // looked at for indices alone
  for (const NestInst& inst : phase.insts) {
    replaced.add(undivided(phase, inst, computed));
    if (replaced.back()) continue;
    for (const InstId id : inst.operands)
      if (id != kNoInst) is_needed[id] = true;
  }
  if (std::ranges::none_of(replaced, [](const auto& r) { return r.has_value(); })) return;
  for (const ElementStore& store : phase.stores) is_needed[store.value] = true;
  for (const Reduction& reduction : phase.reductions) is_needed[reduction.value] = true;

  IdVector<InstId, NestInst> insts;
  IdVector<InstId, InstId> renumbered(phase.insts.size());
  const auto add_index = [&](const Expr& e) {
    if (const auto number = e.as_constant())
      return insts.add({.op = Op::Constant, .dtype = DType::Int64, .constant = {*number}});
    return insts.add({.op = Op::Index, .dtype = DType::Int64, .index = phase.expressions.add(e)});
  };
  for (const InstId id : phase.insts.ids()) {
    NestInst inst = phase.insts[id];
    if ((inst.op == Op::Index || inst.op == Op::Constant) && !is_needed[id]) continue;
    if (replaced[id]) {
      inst.operands[0] = add_index(replaced[id]->first);
      inst.operands[1] = add_index(replaced[id]->second);
    } else {
      for (InstId& operand : inst.operands)
        if (operand != kNoInst) operand = renumbered[operand];
    }
    renumbered[id] = insts.add(inst);
  }
  phase.insts = std::move(insts);
  for (ElementStore& store : phase.stores) store.value = renumbered[store.value];
  for (Reduction& reduction : phase.reductions) reduction.value = renumbered[reduction.value];
}

}  // namespace oxy::backend::cuda
