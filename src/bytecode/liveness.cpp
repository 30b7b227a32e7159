#include "bytecode/liveness.h"

#include "bytecode/operations.h"

namespace oxy::bytecode {
namespace {

// `live`: the locals that are live behind the instruction; becomes those that are live before it.
void apply(const Instruction& instruction, LocalSet& live) {
  switch (operation(instruction.op).local) {
    case LocalUse::Reads:
      live.insert(instruction.arg);
      break;
    case LocalUse::Writes:
      live.erase(instruction.arg);
      break;
    case LocalUse::None:
      break;
  }
}

LocalSet cells_of(const Code& code, int32_t locals) {
  LocalSet cells(locals);
  for (const Instruction& instruction : code.instructions) {
    if (instruction.op == Op::MakeCell) cells.insert(instruction.arg);
    if (instruction.op == Op::CopyFreeVars)
      for (int32_t i = locals - instruction.arg; i < locals; ++i) cells.insert(i);
  }
  return cells;
}

}  // namespace

bool LocalSet::merge(const LocalSet& other) {
  bool grew = false;
  for (size_t i = 0; i < words_.size(); ++i) {
    grew |= (other.words_[i] & ~words_[i]) != 0;
    words_[i] |= other.words_[i];
  }
  return grew;
}

std::vector<LocalSet> live_locals(const Code& code, int32_t locals) {
  const std::vector<Instruction>& instructions = code.instructions;
  const auto count = int32_t(instructions.size());
  // The index of the handler of each instruction, or -1.
  std::vector<int32_t> handlers(static_cast<size_t>(count), -1);
  for (int32_t i = 0; i < count; ++i)
    for (const ExceptionEntry& entry : code.exception_table)
      if (instructions[size_t(i)].at >= entry.begin && instructions[size_t(i)].at < entry.end) {
        int32_t unit = entry.target;
        while (size_t(unit) < code.index_of_offset.size() && code.index_of_offset[size_t(unit)] < 0) ++unit;
        handlers[size_t(i)] = code.index_of_offset[size_t(unit)];
        break;
      }
  const LocalSet cells = cells_of(code, locals);
  std::vector<LocalSet> before(static_cast<size_t>(count), LocalSet{locals});
  // Goes backwards until no set grows. Loops need one more round for each level of nesting.
  for (bool grew = true; grew;) {
    grew = false;
    for (int32_t i = count; i-- > 0;) {
      const Instruction& instruction = instructions[size_t(i)];
      LocalSet live = cells;
      const ControlFlow flow = operation(instruction.op).flow;
      const bool goes_on = flow == ControlFlow::Next || flow == ControlFlow::Branches;
      if (i + 1 < count && goes_on) live.merge(before[size_t(i) + 1]);
      if (flow == ControlFlow::Branches || flow == ControlFlow::Jumps)
        live.merge(before[size_t(instruction.arg)]);
      apply(instruction, live);
      // The instruction may raise before it has stored.
      if (handlers[size_t(i)] >= 0) live.merge(before[size_t(handlers[size_t(i)])]);
      grew |= before[size_t(i)].merge(live);
    }
  }
  return before;
}

}  // namespace oxy::bytecode
