// The text form of a loop nest, for the schedule log.
#include <fmt/format.h>

#include "backend/nests/loop_nest.h"
#include "loop/builder.h"

namespace oxy::backend {

namespace {

std::string loops_text(const std::vector<LoopVariable>& loops) {
  std::string out;
  for (const LoopVariable& l : loops)
    out += fmt::format("{}{} < {}", out.empty() ? "" : ", ", l.variable.str(), l.extent.str());
  return out;
}

std::string array_text(const LoopNest& nest, ArrayId id) {
  switch (nest.arrays.at(id).kind) {
    case ArrayKind::Scratch:
      return fmt::format("scratch{}", id);
    case ArrayKind::Register:
      return fmt::format("register{}", id);
    default:
      return fmt::format("array{}", id);
  }
}

std::string_view reduction_name(ReductionKind kind) {
  constexpr std::string_view kNames[] = {"none",
                                         "sum",
                                         "prod",
                                         "max",
                                         "min",
                                         "any",
                                         "all",
                                         "argmax",
                                         "argmin",
                                         "welford",
                                         "online_softmax",
                                         "running_sum",
                                         "running_prod",
                                         "running_log_sum_exp"};
  return kNames[static_cast<size_t>(kind)];
}

std::string inst_text(const LoopNest& nest, const Phase& phase, InstId id) {
  const NestInst& inst = phase.insts[id];
  std::string out = fmt::format("%{} = {} {}", id, name(inst.dtype), loop::op_name(inst.op));
  if (inst.op == loop::Op::Load) out += " " + array_text(nest, inst.buffer);
  if (inst.index != loop::kNoIndex) out += fmt::format("[{}]", phase.expressions[inst.index].str());
  if (inst.op == loop::Op::Constant)
    out += std::visit([](auto v) { return fmt::format(" {}", v); }, inst.constant.value);
  if (inst.op == loop::Op::Scan) out += fmt::format(" {}", reduction_name(inst.scan));
  for (InstId operand : inst.operands)
    if (operand != loop::kNoInst) out += fmt::format(" %{}", operand);
  return out;
}

}  // namespace

std::string print(const LoopNest& nest) {
  constexpr std::string_view kAxes[] = {"scalar", "lanes over the outer loop", "lanes a phase"};
  std::string out = fmt::format("nest ({}) {}: {}\n", loops_text(nest.outer),
                                kAxes[static_cast<size_t>(nest.axis)], nest.comment);
  for (const Phase& phase : nest.phases) {
    out += fmt::format("  for ({}", loops_text(phase.loops));
    if (!phase.reduction.empty()) out += fmt::format(" reduce {}", loops_text(phase.reduction));
    out += ")";
    if (phase.condition.is_valid()) out += fmt::format(" if {}", array_text(nest, phase.condition));
    out += "\n";
    for (const InstId id : phase.insts.ids()) out += "    " + inst_text(nest, phase, id) + "\n";
    for (const ElementStore& store : phase.stores)
      out += fmt::format("    {}[{}] {} %{}\n", array_text(nest, store.array), store.offset.str(),
                         store.mode == loop::StoreMode::Set         ? "="
                         : store.mode == loop::StoreMode::AtomicAdd ? "+="
                                                                    : "+= in parts",
                         store.value);
    for (const Reduction& reduction : phase.reductions) {
      out += fmt::format("    {} %{} ->", reduction_name(reduction.kind), reduction.value);
      for (const ResultStore& store : reduction.stores)
        out += fmt::format(" {}[{}] = {}", array_text(nest, store.array), store.offset.str(), store.result);
      out += "\n";
    }
  }
  return out;
}

}  // namespace oxy::backend
