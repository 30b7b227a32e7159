#include "backend/cuda/print/loads_ahead.h"

#include <algorithm>
#include <map>

namespace oxy::backend::cuda {

using loop::InstId;
using loop::kNoInst;
using loop::Op;

namespace {

class Search {
 public:
  Search(const LoopNest& nest, const Phase& phase) : nest_(nest), phase_(phase) {
    for (const InstId id : phase.insts.ids()) {
      const NestInst& inst = phase.insts[id];
      if (inst.op == Op::BindIndex) binds_[inst.variable] = id;
      is_known_.push_back(is_known(inst));
    }
  }

  std::vector<bool> run() {
    needed_.assign(phase_.insts.size(), false);
    for (const InstId id : phase_.insts.ids())
      if (phase_.insts[id].op == Op::Load && is_known_[id.number()]) need(id);
    return needed_;
  }

 private:
  // What the instruction computes with: operands, and indices that its expression names. fn(InstId).
  template <class Fn>
  void for_each_operand(const NestInst& inst, Fn fn) const {
    for (const InstId operand : inst.operands)
      if (operand != kNoInst) fn(operand);
    if (inst.op != Op::Load && inst.op != Op::Index && inst.op != Op::BindIndex) return;
    for (const Expr& variable : sym::variables(phase_.expressions[inst.index]))
      if (const auto bind = binds_.find(variable.variable_id()); bind != binds_.end()) fn(bind->second);
  }

  bool is_known(const NestInst& inst) const {
    if (inst.op == Op::Load) {
      const Array& array = nest_.arrays[inst.buffer];
      if (array.kind != ArrayKind::Parameter || array.is_written) return false;
    }
    bool known = true;
    for_each_operand(inst, [&](InstId operand) { known = known && is_known_[operand.number()]; });
    return known;
  }

  void need(InstId id) {
    if (needed_[id.number()]) return;
    needed_[id.number()] = true;
    for_each_operand(phase_.insts[id], [&](InstId operand) { need(operand); });
  }

  const LoopNest& nest_;
  const Phase& phase_;
  std::map<int64_t, InstId> binds_;  // by the variable that is bound
  std::vector<bool> is_known_;
  std::vector<bool> needed_;
};

}  // namespace

std::vector<bool> loads_ahead(const LoopNest& nest, const Phase& phase) {
  return Search(nest, phase).run();
}

}  // namespace oxy::backend::cuda
